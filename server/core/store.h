// Store: a shard's exact parameters and the optimizer's memory of them, flat fp32 arrays, and how
// often they were updated.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_STORE_H_
#define THINWIRE_SERVER_CORE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/byte_chain.h"
#include "common/ids.h"
#include "server/core/accumulator.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/schedule.h"

namespace thinwire {

class Store {
 public:
  // PLANNED_EXAMPLES is the length of the schedule. OPTIMIZER and SCHEDULE outlive the store.
  Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
        const Schedule& schedule);

  // Takes the first values; once seeded, changes nothing. REQUIRES: CheckPayload passed.
  void Seed(const ByteChain& payload);
  // Makes one update of all that ACCUMULATOR counted, and clears it. REQUIRES: seeded(), and it may
  // give its sum (ForEachBlock).
  void Apply(Accumulator& accumulator);

  bool seeded() const { return seeded_; }
  Version version() const { return version_; }
  std::span<const float> masters() const { return masters_; }

 private:
  const uint64_t planned_examples_;
  const Optimizer& optimizer_;
  const Schedule& schedule_;

  bool seeded_ = false;
  Version version_;
  uint64_t examples_ = 0;  // of all updates so far: where the schedule is
  std::vector<float> masters_;
  std::vector<std::vector<float>> slots_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_STORE_H_
