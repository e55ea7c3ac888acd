#include "server/core/index_set.h"

#include <algorithm>
#include <array>
#include <bit>

namespace thinwire {

void IndexSet::ForEachBlock(
    absl::FunctionRef<void(std::span<const uint32_t> indices)> block) const {
  std::array<uint32_t, kBlock> indices;
  size_t count = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
      indices[count++] = static_cast<uint32_t>(i * 64) + std::countr_zero(rest);
      if (count < indices.size()) continue;
      block(indices);
      count = 0;
    }
  }
  if (count > 0) block(std::span<const uint32_t>(indices).first(count));
}

void IndexSet::Clear() { std::ranges::fill(words_, 0); }

}  // namespace thinwire
