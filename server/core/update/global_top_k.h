// GlobalTopK passes only the largest values of a shard's folded gradient to the optimizer (gTop-k:
// Shi et al. 2019, arXiv 1901.04359).
//
//   v         = remainder + sum / weight
//   selected  = the k values of v with the largest magnitudes, without zeros
//   remainder = v without the selected values
//
// The remainder contains averaged gradients, so the weights of later updates do not scale it.
// Therefore no gradient value is lost or counted twice: selected + remainder = previous remainder +
// sum / weight. Among equal magnitudes, the value with the lower index is selected. Values of v
// that overflow become the largest finite float.
//
// Alternatively, as in the paper, unselected values return to the workers: this class drops them,
// and each worker adds its own unselected values to its residual (docs/optimizers.md). The paper
// selects in a tree of workers, which can select other values and loses some of them; experiments/
// compares both.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_
#define THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/memory/float_array.h"
#include "common/spec/sparse_update_spec.h"
#include "server/core/update/accumulator.h"

namespace thinwire {

class GlobalTopK {
 public:
  // MEMORY allocates the remainder array (see above) and must outlive this object.
  explicit GlobalTopK(size_t value_count, UnselectedOwner keeper = UnselectedOwner::kServer,
                      std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : keeper_(keeper), remainder_(value_count, memory) {}

  // Adds SCALE times the sum of ACCUMULATOR to the remainder, then selects the COUNT values of
  // largest magnitude and removes them from the remainder. REQUIRES: ACCUMULATOR contains
  // gradients, none of which waits for ordered folding (accumulator.h); 1 <= count <= value_count.
  void Select(const Accumulator& accumulator, float scale, size_t count);

  // The indices of the last selection, in ascending order, and the values at these indices.
  std::span<const uint32_t> indices() const { return indices_; }
  std::span<const float> values() const { return values_; }
  // Splits a dense array, which contains the selected values and 0 at unselected indices, into
  // consecutive blocks. Calls block(first, values) for each; FIRST is the index of the block's
  // first value.
  void ForEachBlock(BlockFunction block) const;

  // The unselected values, to which the next Select() adds its gradient; zeros if unselected values
  // return to the workers.
  std::span<const float> remainder() const { return remainder_; }

  // Returns a copy of the remainder, or an empty chain if unselected values return to the workers.
  ByteChain Save() const;
  // Sets the remainder to REMAINDER, which Save() returned, and clears the last selection. Errors:
  // InvalidArgument if REMAINDER has the wrong size.
  absl::Status Restore(const ByteChain& remainder);

 private:
  const UnselectedOwner keeper_;
  FloatArray remainder_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  uint32_t threshold_ =
      0;  // the predicted threshold of the next selection (kernels/select/top_k.h)
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_GLOBAL_TOP_K_H_
