#include "common/files/file_kind.h"

#include <cstdint>

namespace thinwire {
namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  std::string_view bytes;
  std::string_view kind;
};

constexpr Magic kMagics[] = {
    {"PK\x03\x04"sv, "a zip archive, such as a TorchScript or PyTorch file"},
    {"\x80\x02"sv, "a Python pickle, such as an old PyTorch file"},
    {"\x80\x03"sv, "a Python pickle"},
    {"\x80\x04"sv, "a Python pickle"},
    {"\x80\x05"sv, "a Python pickle"},
    {"\x93NUMPY"sv, "a NumPy array"},
    {"\x89HDF"sv, "an HDF5 file"},
    {"\x1f\x8b"sv, "a gzip file"},
    {"\xfd"
     "7zXZ"sv,
     "an xz file"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd file"},
    {"BZh"sv, "a bzip2 file"},
    {"\x7f"
     "ELF"sv,
     "an ELF program or library"},
    {"\x89PNG"sv, "a PNG image"},
    {"\xff\xd8\xff"sv, "a JPEG image"},
    {"GIF8"sv, "a GIF image"},
    {"%PDF"sv, "a PDF document"},
    {"\x00\x00\x08\x01"sv, "an IDX file"},
    {"\x00\x00\x08\x03"sv, "an IDX file"},
};

// A safetensors file begins with the length of its JSON header: 8 bytes, little-endian.
bool IsSafetensors(std::string_view start) {
  if (start.size() < 9 || start[8] != '{') return false;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(start[i]);
  return length > 1 && length <= 100'000'000;
}

}  // namespace

std::string_view FileKind(std::string_view start) {
  for (const Magic& magic : kMagics) {
    if (start.starts_with(magic.bytes)) return magic.kind;
  }
  if (IsSafetensors(start)) return "a safetensors file";
  if (start.size() > 262 && start.substr(257, 5) == "ustar") return "a tar archive";
  if (start.substr(0, kFileKindBytes).find('\0') != std::string_view::npos) return "a binary file";
  return "";
}

}  // namespace thinwire
