// Store: a shard's exact parameters, a flat fp32 array, and how often they were updated.
//
// Readers may borrow the masters of a version (Payload): then the next update is written to another
// buffer, and what was lent stays as it is until the last reader lets go. What nobody borrowed is
// updated in place.
//
// Lives on its shard's strand; what it lends may be read on any thread.
#ifndef THINWIRE_SERVER_CORE_STORE_H_
#define THINWIRE_SERVER_CORE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>

#include "common/buffer_pool.h"
#include "common/byte_chain.h"
#include "common/codec/payload.h"
#include "common/ids.h"
#include "server/core/accumulator.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/schedule.h"
#include "server/core/updater.h"

namespace thinwire {

class Store {
 public:
  // PLANNED_EXAMPLES is the length of the schedule. OPTIMIZER and SCHEDULE outlive the store.
  // MEMORY holds the masters and slots, and outlives every reader of the masters.
  Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
        const Schedule& schedule, const Thinning& thinning = {},
        std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Takes the first values; once seeded, changes nothing. REQUIRES: PAYLOAD has value_count values.
  void Seed(const CheckedPayload& payload);
  // Makes one update of all that ACCUMULATOR counted, and clears it. REQUIRES: seeded(), and it may
  // give its sum, sparse only if the thinning wants that.
  void Apply(Accumulator& accumulator);

  bool seeded() const { return seeded_; }
  Version version() const { return version_; }
  std::span<const float> masters() const { return masters_; }
  // The masters of now as an fp32 payload, not copied.
  ByteChain Payload();
  // What the newest update took of its gradients (updater.h).
  const ByteChain& taken_list() const { return updater_.taken_list(); }

 private:
  // Another buffer for the masters, of any content.
  void TakeBuffer();

  const size_t value_count_;
  const uint64_t planned_examples_;
  const Schedule& schedule_;

  bool seeded_ = false;
  Version version_;
  uint64_t examples_ = 0;  // of all updates so far: where the schedule is
  BufferPool pool_;
  std::shared_ptr<const BufferPool::Buffer> buffer_;  // where the masters lie
  bool lent_ = false;                                 // the buffer, to a reader
  std::span<float> masters_;
  Updater updater_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STORE_H_
