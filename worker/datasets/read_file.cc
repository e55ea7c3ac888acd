#include "worker/datasets/read_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr unsigned kChunkBytes = 1 << 20;

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path, uint64_t max_bytes) {
  std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    const int error = errno;
    return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be opened"));
  }
  gzbuffer(file.get(), kChunkBytes);
  std::vector<uint8_t> bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(before + kChunkBytes);
    const int got = gzread(file.get(), bytes.data() + before, kChunkBytes);
    if (got < 0) {
      int code = Z_OK;
      const char* reason = gzerror(file.get(), &code);
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": read error after ", before,
                       " bytes: ", code == Z_ERRNO ? std::strerror(errno) : reason));
    }
    bytes.resize(before + static_cast<size_t>(got));
    if (bytes.size() > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": file too large (expected at most ", max_bytes, " bytes)"));
    }
    if (got == 0) break;
  }
  // If a gzip stream is truncated, gzread reports no error; only gzclose_r does.
  const int closed = gzclose_r(file.release());
  if (closed == Z_BUF_ERROR) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": gzip stream cut short after ", bytes.size(), " bytes"));
  }
  return bytes;
}

}  // namespace thinwire
