// Store holds a shard's exact parameters (masters), a flat fp32 array, and the number of updates
// applied to them.
//
// Payload() lends the masters to readers without a copy. The next update then writes to another
// buffer, and the lent buffer stays unchanged until the last reader releases it. If the masters are
// not lent, updates are in place.
//
// Lives on its shard's strand; lent masters may be read on any thread.
#ifndef THINWIRE_SERVER_CORE_UPDATE_STORE_H_
#define THINWIRE_SERVER_CORE_UPDATE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/memory/buffer_pool.h"
#include "common/memory/byte_chain.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/updater.h"

namespace thinwire {

// The state of a seeded Store between two updates.
struct StoreSnapshot {
  Version version;
  bool saturated = false;
  uint64_t saturated_updates = 0;
  uint64_t examples = 0;                     // number of examples in all updates
  std::optional<uint64_t> planned_examples;  // nullopt: those of the constructor
  ByteChain masters;                         // floats
  UpdaterSnapshot updater;

  bool operator==(const StoreSnapshot&) const = default;
};

class Store {
 public:
  // PLANNED_EXAMPLES is the planned length of the run for the learning rate schedule. OPTIMIZER and
  // SCHEDULE must outlive the store. MEMORY allocates the masters and slots, and must outlive every
  // reader of the masters. TENSOR_SIZES: see Updater.
  Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
        const Schedule& schedule, const SparseUpdateSpec& sparse_updates = {},
        std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
        std::vector<size_t> tensor_sizes = {});

  // Replaces the planned length of the run.
  void Plan(uint64_t examples) { planned_examples_ = examples; }
  // Sets the initial values of the masters. Only the first call has an effect. REQUIRES: PAYLOAD
  // contains value_count values.
  void Seed(const CheckedPayload& payload);
  // Applies one update with the mean of ACCUMULATOR times FACTOR, then clears ACCUMULATOR.
  // REQUIRES: seeded(); ACCUMULATOR contains gradients, none of which waits for ordered folding
  // (accumulator.h); its sum is sparse only if sparse_updates.WantsSparse().
  void Apply(Accumulator& accumulator, double factor = 1);
  // An update in two halves, of a shard with a part of a tensor whose norms the optimizer reads.
  // Measure returns the shard's sums of squares, and ApplyMeasured applies the update with the SUMS
  // over all parts. REQUIRES: as Apply(); ACCUMULATOR and the masters are the same in both.
  SquareSums Measure(const Accumulator& accumulator);
  void ApplyMeasured(Accumulator& accumulator, const SquareSums& sums);
  // Applies one update that sets all masters to 0.
  void Clear();
  // Applies one update that sets the masters to the values of PAYLOAD. REQUIRES: PAYLOAD contains
  // value_count values.
  void Replace(const CheckedPayload& payload);

  bool seeded() const { return seeded_; }
  Version version() const { return version_; }
  // Returns whether the last update left a master or slot that it changed at the magnitude of the
  // largest finite float, and the number of such updates.
  bool saturated() const { return saturated_; }
  uint64_t saturated_updates() const { return saturated_updates_; }
  std::span<const float> masters() const { return masters_; }
  // Returns the moving average of the masters, or the masters if the job has none.
  std::span<const float> averages() const {
    return updater_.average().empty() ? masters() : updater_.average();
  }
  // Returns the current masters as an fp32 payload that shares their memory.
  ByteChain Payload();
  // Returns the indices that the last update selected, in the form of Updater::selected_list().
  const ByteChain& selected_list() const { return updater_.selected_list(); }

  // Returns the current state. The snapshot shares the memory of the masters like Payload(); all
  // other arrays are copies. REQUIRES: seeded().
  StoreSnapshot Save();
  // Continues from SNAPSHOT. Errors: InvalidArgument if SNAPSHOT does not fit the arguments of the
  // constructor; the store must not be used then. REQUIRES: !seeded().
  absl::Status Restore(const StoreSnapshot& snapshot);

 private:
  // Returns the next update, with the mean of ACCUMULATOR times FACTOR.
  Update Next(const Accumulator& accumulator, double factor = 1) const;
  void Apply(const Update& update, Accumulator& accumulator);
  // Replaces the buffer of the masters by another one, whose content is undefined.
  void TakeBuffer();

  const size_t value_count_;
  uint64_t planned_examples_;
  const Schedule& schedule_;

  bool seeded_ = false;
  Version version_;
  bool saturated_ = false;
  uint64_t saturated_updates_ = 0;
  uint64_t examples_ = 0;  // number of examples in all updates; input of the schedule
  BufferPool pool_;
  std::shared_ptr<const BufferPool::Buffer> buffer_;  // the memory of the masters
  bool lent_ = false;                                 // whether a reader may hold buffer_
  std::span<float> masters_;
  Updater updater_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_STORE_H_
