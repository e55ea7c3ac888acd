// GlobalTopK: of a shard's folded gradients only the largest values reach the optimizer (gTop-k:
// Shi et al. 2019, arXiv 1901.04359).
//
//   v = rest + sum / weight          the average gradient and what earlier ones left
//   taken = the k values of largest magnitude that are not 0
//   rest = v without them
//
// The rest is in the unit of the averages and has no weight of its own, so no mass is lost or made,
// whatever weights the updates had: taken + rest = rest before + sum / weight. Of equal magnitudes
// the lower index is taken.
//
// Or, as in the paper, the rest goes back to the workers: it is dropped here, and each puts what it
// sent of it into its residual (docs/optimizers.md). The paper's tree of peers also chooses
// differently, and loses some mass; experiments/ compares them.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_GLOBAL_TOP_K_H_
#define THINWIRE_SERVER_CORE_GLOBAL_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/float_array.h"
#include "common/spec/sparse_update_spec.h"
#include "server/core/accumulator.h"

namespace thinwire {

class GlobalTopK {
 public:
  // The rest lies in MEMORY, which outlives the selection.
  explicit GlobalTopK(size_t value_count, UnselectedOwner rest = UnselectedOwner::kServer,
                      std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : keeper_(rest), rest_(value_count, memory) {}

  // Adds SCALE times the sum of ACCUMULATOR, and takes the COUNT largest out. REQUIRES: it may give
  // its sum; 1 <= count <= value_count.
  void Take(const Accumulator& accumulator, float scale, size_t count);

  // What the last Take took: indices, rising, and their values.
  std::span<const uint32_t> indices() const { return indices_; }
  std::span<const float> values() const { return values_; }
  // The same as an array that is 0 elsewhere: block(first, values) for runs of it, in order.
  void ForEachBlock(BlockFunction block) const;

  // What comes with the next Take; zeros if the workers keep it.
  std::span<const float> rest() const { return rest_; }

 private:
  const UnselectedOwner keeper_;
  FloatArray rest_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  uint32_t collect_from_ = 0;  // kernels/top_k.h
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_GLOBAL_TOP_K_H_
