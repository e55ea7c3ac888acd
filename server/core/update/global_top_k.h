// GlobalTopK passes only the largest values of a shard's folded gradient to the optimizer (gTop-k:
// Shi et al. 2019, arXiv 1901.04359).
//
//   v         = remainder + sum / weight
//   selected  = the k values of v with the largest magnitudes, without zeros
//   remainder = v without the selected values
//
// The remainder has the unit of the averages and no weight of its own, so no gradient mass is lost
// or created, whatever the weights of the updates: selected + remainder = previous remainder + sum
// / weight. Among equal magnitudes the lower index is selected.
//
// Alternatively, as in the paper, unselected values return to the workers: this class drops them,
// and each worker adds its own unselected values to its residual (docs/optimizers.md). The paper's
// tree of peers selects differently and loses some mass; experiments/ compares both.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_
#define THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/float_array.h"
#include "common/spec/sparse_update_spec.h"
#include "server/core/update/accumulator.h"

namespace thinwire {

class GlobalTopK {
 public:
  // The remainder lies in MEMORY, which outlives the selection.
  explicit GlobalTopK(size_t value_count, UnselectedOwner keeper = UnselectedOwner::kServer,
                      std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : keeper_(keeper), remainder_(value_count, memory) {}

  // Adds SCALE times the sum of ACCUMULATOR to the remainder, then selects the COUNT largest values
  // and removes them from it. REQUIRES: the accumulator's sum is readable (accumulator.h); 1 <=
  // count <= value_count.
  void Select(const Accumulator& accumulator, float scale, size_t count);

  // The last selection: indices in rising order, and their values.
  std::span<const uint32_t> indices() const { return indices_; }
  std::span<const float> values() const { return values_; }
  // Passes the last selection as a dense array, 0 at unselected indices: calls block(first, values)
  // for consecutive runs.
  void ForEachBlock(BlockFunction block) const;

  // The values that the next Select() starts from; zeros if the workers keep them.
  std::span<const float> remainder() const { return remainder_; }

 private:
  const UnselectedOwner keeper_;
  FloatArray remainder_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  uint32_t threshold_ = 0;  // kernels/top_k.h
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_
