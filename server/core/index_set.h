// IndexSet: some of a shard's indices, a bit for each, so that they come out rising whatever their
// order was.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_INDEX_SET_H_
#define THINWIRE_SERVER_CORE_INDEX_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

namespace thinwire {

class IndexSet {
 public:
  // For indices below UNIVERSE.
  explicit IndexSet(size_t universe) : words_((universe + 63) / 64) {}

  // Whether INDEX was not yet in it.
  bool Insert(uint32_t index) {
    uint64_t& word = words_[index / 64];
    const uint64_t bit = uint64_t{1} << (index % 64);
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }
  bool Has(uint32_t index) const { return (words_[index / 64] >> (index % 64) & 1) != 0; }

  // Calls block with the indices, rising, at most kBlock at a time.
  void ForEachBlock(absl::FunctionRef<void(std::span<const uint32_t> indices)> block) const;
  static constexpr size_t kBlock = 512;

  void Clear();

 private:
  std::vector<uint64_t> words_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_INDEX_SET_H_
