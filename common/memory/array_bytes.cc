#include "common/memory/array_bytes.h"

#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire {

static_assert(std::endian::native == std::endian::little, "arrays are copied without conversion");

ByteChain CopyArray(std::span<const std::byte> array) {
  return ByteChain(std::vector<std::byte>(array.begin(), array.end()));
}

absl::Status FillArray(const std::string& name, const ByteChain& bytes,
                       std::span<std::byte> array) {
  if (bytes.size() != array.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": wrong size (expected ", array.size(),
                                                   " bytes, got ", bytes.size(), ")"));
  }
  bytes.CopyTo(array);
  return absl::OkStatus();
}

}  // namespace thinwire
