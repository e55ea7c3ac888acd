// Updater applies the optimizer to one shard and owns the optimizer's per-value state.
//
//   lazy_slots   selection   the update's gradient                    values it touches
//   no           no          the whole sum                            all
//   yes          no          the entries of the sum, or all of it     those with an entry
//   no           yes         the k largest values, 0 elsewhere        all
//   yes          yes         the k largest values                     k
//
// docs/optimizers.md defines lazy slots and the selection (gTop-k). Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_UPDATE_UPDATER_H_
#define THINWIRE_SERVER_CORE_UPDATE_UPDATER_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "common/byte_chain.h"
#include "common/float_array.h"
#include "common/spec/sparse_update_spec.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/global_top_k.h"

namespace thinwire {

class Updater {
 public:
  // OPTIMIZER and MEMORY outlive the updater. Slots and the selection's remainder lie in MEMORY.
  Updater(size_t value_count, const Optimizer& optimizer, const SparseUpdateSpec& sparse_updates,
          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Writes the masters after the update to MASTERS, given the masters BEFORE it. The two are the
  // same array or do not overlap. REQUIRES: both have value_count values; the accumulator's sum is
  // readable (accumulator.h) and is sparse only if SPARSE_UPDATES.WantsSparse().
  void Apply(const Update& update, const Accumulator& accumulator, std::span<const float> before,
             std::span<float> masters);

  // Returns the indices that the last update selected, in rising order. REQUIRES: there is a
  // selection.
  std::span<const uint32_t> selected() const { return selection_->indices(); }
  // Returns the same indices as an index list (common/codec/sparse/index_list.h) if unselected
  // values return to the workers; a list without indices before the first update. Empty otherwise.
  const ByteChain& selected_list() const { return selected_list_; }

 private:
  void ApplyEverywhere(const Update& update, const Accumulator& accumulator,
                       std::span<const float> before, std::span<float> masters);
  void ApplyAtEntries(const Update& update, std::span<const uint32_t> indices,
                      std::span<const float> sums, std::span<float> masters);
  void CollectEntries(const Accumulator& accumulator);
  // Returns how many values a selection takes.
  size_t SelectedCount(double progress) const;

  const Optimizer& optimizer_;
  const SparseUpdateSpec spec_;
  std::vector<FloatArray> slots_;
  std::vector<uint32_t> last_;  // LazyArrays::last with lazy slots, else empty
  std::optional<GlobalTopK> selection_;
  ByteChain selected_list_;
  // Scratch of one update.
  std::vector<uint32_t> indices_;
  std::vector<float> sums_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_UPDATER_H_
