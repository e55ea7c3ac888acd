#include "common/codec/sparse/index_list.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/sparse/index_code.h"

namespace thinwire {
namespace {

// The wire is little-endian, and so are all supported machines.
static_assert(std::endian::native == std::endian::little);

constexpr IndexCoder kCoder = IndexCoder::kEliasFano;

template <typename... Words>
absl::Status InvalidList(size_t universe, const Words&... words) {
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
    return InvalidList(universe, "too short (expected at least ", sizeof(count), " bytes, got ",
                       list.size(), ")");
  }
  list.Sub(0, sizeof(count)).CopyTo(std::as_writable_bytes(std::span(&count, 1)));
  if (count > universe)
    return InvalidList(universe, "too many (expected at most ", universe, ", got ", count, ")");
  const size_t code_bytes = MaxIndexBytes(kCoder, count, universe);
  if (list.size() != sizeof(count) + code_bytes) {
    return InvalidList(universe, "wrong length for k = ", count, " (expected ",
                       sizeof(count) + code_bytes, " bytes, got ", list.size(), ")");
  }
  std::vector<std::byte> code(code_bytes);
  list.Sub(sizeof(count), code_bytes).CopyTo(code);
  if (absl::Status s = CheckIndices(kCoder, code, count, universe); !s.ok()) {
    return InvalidList(universe, s.message());
  }
  std::vector<uint32_t> indices(count);
  IndexReader(kCoder, code, count, universe).Next(indices);
  return indices;
}

}  // namespace thinwire
