// IndexSet is a set of indices of a shard's values, stored as one bit per value. It lists its
// indices in ascending order.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_UPDATE_INDEX_SET_H_
#define THINWIRE_SERVER_CORE_UPDATE_INDEX_SET_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

namespace thinwire {

class IndexSet {
 public:
  static constexpr size_t kBlock = 512;

  // Creates an empty set for indices below UNIVERSE.
  explicit IndexSet(size_t universe) : words_((universe + 63) / 64) {}

  // Adds INDEX to the set. Returns whether INDEX was absent before.
  bool Insert(uint32_t index) {
    uint64_t& word = words_[index / 64];
    const uint64_t bit = uint64_t{1} << (index % 64);
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }
  bool Has(uint32_t index) const { return (words_[index / 64] >> (index % 64) & 1) != 0; }

  // Calls block with all indices in ascending order, at most kBlock indices per call.
  void ForEachBlock(absl::FunctionRef<void(std::span<const uint32_t> indices)> block) const {
    std::array<uint32_t, kBlock> indices;
    size_t count = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        indices[count++] = static_cast<uint32_t>(i * 64) + std::countr_zero(word);
        if (count < indices.size()) continue;
        block(indices);
        count = 0;
      }
    }
    if (count > 0) block(std::span<const uint32_t>(indices).first(count));
  }

  void Clear() { std::ranges::fill(words_, 0); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_INDEX_SET_H_
