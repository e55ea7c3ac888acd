#include "common/codec/index_list.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/index_code.h"

namespace thinwire {
namespace {

// The wire is little-endian, and so are all machines this is built for.
static_assert(std::endian::native == std::endian::little);

constexpr IndexCoder kCoder = IndexCoder::kEliasFano;

template <typename... Words>
absl::Status BadList(size_t universe, const Words&... words) {
  return absl::InvalidArgumentError(
      absl::StrCat("list of indices below ", universe, ": ", words...));
}

}  // namespace

ByteChain EncodeIndexList(std::span<const uint32_t> indices, size_t universe) {
  const auto count = static_cast<uint32_t>(indices.size());
  std::vector<std::byte> list(sizeof(count) + MaxIndexBytes(kCoder, count, universe));
  std::memcpy(list.data(), &count, sizeof(count));
  EncodeIndices(kCoder, indices, universe, list.data() + sizeof(count));
  return ByteChain(std::move(list));
}

absl::StatusOr<std::vector<uint32_t>> DecodeIndexList(const ByteChain& list, size_t universe) {
  uint32_t count = 0;
  if (list.size() < sizeof(count)) {
    return BadList(universe, "want at least ", sizeof(count), " bytes, got ", list.size());
  }
  list.Sub(0, sizeof(count)).CopyTo(std::as_writable_bytes(std::span(&count, 1)));
  if (count > universe) return BadList(universe, "want at most ", universe, ", got ", count);
  const size_t code_bytes = MaxIndexBytes(kCoder, count, universe);
  if (list.size() != sizeof(count) + code_bytes) {
    return BadList(universe, "want ", sizeof(count) + code_bytes, " bytes for ", count, ", got ",
                   list.size());
  }
  std::vector<std::byte> code(code_bytes);
  list.Sub(sizeof(count), code_bytes).CopyTo(code);
  if (absl::Status s = CheckIndices(kCoder, code, count, universe); !s.ok()) {
    return BadList(universe, s.message());
  }
  std::vector<uint32_t> indices(count);
  IndexReader(kCoder, code, count, universe).Next(indices);
  return indices;
}

}  // namespace thinwire
