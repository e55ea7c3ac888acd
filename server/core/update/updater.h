// Updater applies the optimizer to one shard and owns the optimizer's per-value state.
//
//   lazy_slots   selection   the update's gradient                    updated values
//   no           no          the whole sum                            all
//   yes          no          the entries of a sparse sum              values with an entry
//                            the whole of a dense sum                 all
//   no           yes         the k largest values, 0 elsewhere        all
//   yes          yes         the k largest values                     the k selected values
//
// An optimizer that needs whole tensors gets one call per tensor, after the update's gradient was
// decoded into one array. If other shards have parts of the tensor, the update has two halves,
// Measure() and Apply(). If the optimizer has an average_decay() d, each update t also moves an
// average a of all masters x, in every row of the table:
//
//   a = a + (1 - d_t) (x - a)    d_t = min(d, (1 + t) / (10 + t))
//
// The average of iterates is that of Polyak and Juditsky 1992. The smaller decay of the first
// updates is that of ExponentialMovingAverage in TensorFlow with num_updates.
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

#include "absl/status/status.h"
#include "common/memory/byte_chain.h"
#include "common/memory/float_array.h"
#include "common/spec/sparse_update_spec.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/global_top_k.h"

namespace thinwire {

// The state of an Updater between two updates. Arrays that the job does not use are empty.
struct UpdaterSnapshot {
  std::vector<ByteChain> slots;  // floats
  ByteChain average;             // the moving average of the masters: floats
  ByteChain last;                // LazyArrays::last: uint32_t
  ByteChain remainder;           // the remainder of gTop-k at the server: floats
  ByteChain selected_list;       // see Updater::selected_list()

  bool operator==(const UpdaterSnapshot&) const = default;
};

class Updater {
 public:
  // OPTIMIZER and MEMORY must outlive the updater. MEMORY allocates the slots, the selection's
  // remainder and the decoded gradient. TENSOR_SIZES are the value counts of the shard's tensors if
  // OPTIMIZER needs whole tensors; none: all values are one tensor. REQUIRES: OPTIMIZER does not
  // need whole tensors, or slots are not lazy.
  Updater(size_t value_count, const Optimizer& optimizer, const SparseUpdateSpec& sparse_updates,
          std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
          std::vector<size_t> tensor_sizes = {});

  // Starts the average, if there is one, with the shard's initial MASTERS. REQUIRES: Apply() was
  // not called.
  void Start(std::span<const float> masters);
  // The first half of an update (Optimizer::Measure) of a shard with a part of one tensor, whose old
  // masters are MASTERS: selects and decodes the gradient, and returns the sums of squares.
  // REQUIRES: as Apply(); the optimizer reads norms.
  SquareSums Measure(const Update& update, const Accumulator& accumulator,
                     std::span<const float> masters);
  // Applies one update, or its second half if `update.measured` is set: reads the old masters from
  // BEFORE and writes the new masters to MASTERS. Returns whether a new master or slot has the
  // magnitude of the largest finite float. REQUIRES:
  // BEFORE and MASTERS contain value_count values, and are the same array or do not overlap;
  // ACCUMULATOR contains gradients, none of which waits for ordered folding (accumulator.h); its
  // sum is sparse only if sparse_updates.WantsSparse().
  bool Apply(const Update& update, const Accumulator& accumulator, std::span<const float> before,
             std::span<float> masters);

  // Returns the moving average of the masters, or no values if the job has none.
  std::span<const float> average() const { return average_; }
  // Returns the indices that the last update selected, in ascending order. REQUIRES: the job uses
  // gTop-k selection.
  std::span<const uint32_t> selected() const { return selection_->indices(); }
  // Returns the selected indices as an index list (common/codec/sparse/index_list.h) if unselected
  // values return to the workers. Before the first update, the list contains no index. Returns an
  // empty chain in jobs whose unselected values stay at the server.
  const ByteChain& selected_list() const { return selected_list_; }

  UpdaterSnapshot Save() const;
  // Continues from SNAPSHOT. Errors: InvalidArgument if SNAPSHOT does not fit the arguments of the
  // constructor; the updater must not be used then. REQUIRES: Apply() was not called.
  absl::Status Restore(const UpdaterSnapshot& snapshot);

 private:
  bool ApplyEverywhere(const Update& update, const Accumulator& accumulator,
                       std::span<const float> before, std::span<float> masters);
  bool ApplyToTensors(const Update& update, const Accumulator& accumulator,
                      std::span<const float> before, std::span<float> masters);
  // Selects the values of the update's gradient, if gTop-k is on.
  void Select(const Update& update, const Accumulator& accumulator);
  // Returns UPDATE with the scale of the update's gradient.
  Update OfGradient(const Update& update) const;
  void DecodeGradient(const Accumulator& accumulator);
  // Calls BLOCK with all values of the update's gradient.
  void ForEachBlock(const Accumulator& accumulator, BlockFunction block) const;
  bool ApplyAtEntries(const Update& update, std::span<const uint32_t> indices,
                      std::span<const float> sums, std::span<float> masters);
  void CollectEntries(const Accumulator& accumulator);
  // Moves the average of the values from FIRST on, if there is one, toward their new MASTERS.
  void MoveAverage(const Update& update, size_t first, std::span<const float> masters);
  // Returns the number of values that gTop-k selects at PROGRESS, the completed fraction of the
  // run.
  size_t SelectedCount(double progress) const;

  const Optimizer& optimizer_;
  const SparseUpdateSpec spec_;
  std::vector<size_t> tensor_sizes_;  // empty if the optimizer does not need whole tensors
  std::vector<FloatArray> slots_;
  FloatArray average_;  // empty if the job has no average
  // The last update with an entry for each value; empty unless slots are lazy.
  std::vector<uint32_t> last_;
  std::optional<GlobalTopK> selection_;
  ByteChain selected_list_;
  // Scratch memory of one update.
  std::vector<uint32_t> indices_;
  std::vector<float> sums_;
  FloatArray gradient_;  // empty if the optimizer does not need whole tensors
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_UPDATER_H_
