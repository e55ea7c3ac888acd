// Updater: the optimizer at work on one shard, and its memory of it.
//
//   lazy_slots   selection   an update is made of                     and touches
//   no           no          the whole sum                            every value
//   yes          no          the sum's entries, or the whole sum      the values that have an entry
//   no           yes         the k largest, 0 elsewhere               every value
//   yes          yes         the k largest                            k values
//
// docs/optimizers.md says what lazy slots are and what the selection does. Lives on its shard's
// strand.
#ifndef THINWIRE_SERVER_CORE_UPDATER_H_
#define THINWIRE_SERVER_CORE_UPDATER_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "common/byte_chain.h"
#include "common/density_warmup.h"
#include "common/float_array.h"
#include "server/core/accumulator.h"
#include "server/core/global_top_k.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {

// How an update is kept thin.
struct Thinning {
  bool lazy_slots = false;
  std::optional<double> selection_density;  // gTop-k
  size_t selection_least = 1;               // values, however low the density
  DensityWarmup selection_warmup;           // as that of what is pushed
  SelectionRest selection_rest = SelectionRest::kServer;

  // Whether a sum of sparse gradients is worth keeping as such.
  bool WantsSparse() const { return lazy_slots || selection_density.has_value(); }

  bool operator==(const Thinning&) const = default;
};

class Updater {
 public:
  // OPTIMIZER and MEMORY outlive the updater; slots and selection lie in MEMORY.
  Updater(size_t value_count, const Optimizer& optimizer, const Thinning& thinning,
          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Makes MASTERS of BEFORE, the masters before the update: the same array, or one apart from it.
  // REQUIRES: both have value_count values; ACCUMULATOR may give its sum, and gives sparse ones
  // only if the thinning wants them.
  void Apply(const Update& update, const Accumulator& accumulator, std::span<const float> before,
             std::span<float> masters);

  // With a selection, the indices that the last update took, rising.
  std::span<const uint32_t> taken() const { return selection_->indices(); }
  // The same as an index list (common/codec/sparse/index_list.h) if the rest goes back to the
  // workers, a list of none before the first update; else empty.
  const ByteChain& taken_list() const { return taken_list_; }

 private:
  void ApplyEverywhere(const Update& update, const Accumulator& accumulator,
                       std::span<const float> before, std::span<float> masters);
  void ApplyAtEntries(const Update& update, std::span<const uint32_t> indices,
                      std::span<const float> sums, std::span<float> masters);
  void CollectEntries(const Accumulator& accumulator);
  // How many values a selection takes.
  size_t SelectedCount(double progress) const;

  const Optimizer& optimizer_;
  const Thinning thinning_;
  std::vector<FloatArray> slots_;
  std::vector<uint32_t> last_;  // with lazy slots, as ApplySparse has it; else empty
  std::optional<GlobalTopK> selection_;
  ByteChain taken_list_;
  // Of the update at hand.
  std::vector<uint32_t> indices_;
  std::vector<float> sums_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATER_H_
