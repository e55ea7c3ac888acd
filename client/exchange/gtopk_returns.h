// GtopkReturns: keeps each accepted push until the server says which of its values gTop-k selected,
// then returns the unselected values to the worker's residual (docs/optimizers.md). Used only if
// the job returns them to the workers: the servers' parameters then carry a list of selected
// indices.
//
//   parameters with frontier t + 1   carry the indices that round t selected
//   accepted push of step t          its values outside that list are returned, once
//   only a later frontier arrives    the push's unselected values are lost, and counted
//
// Parameters normally follow the verdict of the push. They precede it if the verdict was lost with
// its stream. The first parameters of a shard, which precede all its pushes, tell whether lists
// follow.
#ifndef THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_
#define THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/push_encoder.h"
#include "client/exchange/status_report.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

// Not thread-safe.
class GtopkReturns {
 public:
  // All arguments must outlive this object.
  GtopkReturns(const Partition& partition, PushEncoder& encoder, StatusReport& report);

  // Returns whether accepted pushes of SHARD are kept.
  bool Keeps(ShardId shard) const { return slots_[shard.value].keeps; }
  // Returns whether any push awaits its list.
  bool pending() const { return pending_count_ > 0; }

  // Keeps PUSH, or returns its unselected values if its list has arrived. Call once per push.
  // Errors: the encoder's.
  absl::Status OnAccepted(const PushEntry& push);
  // Handles the last entry of a shard's parameters. Errors: InvalidArgument "shard 3: selected:
  // ..." for a malformed list, and nothing changes; the encoder's.
  absl::Status OnParameters(const ParametersEntry& entry);

 private:
  struct Slot {
    bool keeps = false;
    std::optional<PushEntry> push;
    // Of the last parameters.
    Step frontier;
    std::vector<uint32_t> selected;
  };

  absl::Status Return(const Slot& slot, const PushEntry& push);
  void CountLost() { report_.Count(WorkerCounters::kLostGtopkReturnsFieldNumber); }

  const Partition& partition_;
  PushEncoder& encoder_;
  StatusReport& report_;
  std::vector<Slot> slots_;  // by shard
  size_t pending_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_
