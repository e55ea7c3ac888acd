// GtopkReturns: keeps each accepted push until the server says which of its values gTop-k selected,
// then returns the unselected values to the worker's residual (docs/optimizers.md). gTop-k
// selection: the server applies only the largest values of the summed gradient. Used only if the
// job returns unselected values to the workers. In that case each server sends a list of the
// selected indices together with a shard's parameters, and the shard's frontier: the step whose
// pushes the server now collects.
//
//   parameters with frontier t + 1   contain the list of the indices that round t selected
//   accepted push of step t          its values outside the list are returned, once
//   only a later frontier arrives    the push's unselected values are lost; a counter reports this
//
// Parameters normally arrive after the verdict of the push. They arrive before it if the verdict
// was lost with its stream. The first parameters of a shard, which arrive before the shard's first
// push, contain a list if and only if the job returns unselected values to the workers.
#ifndef THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_
#define THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/push_encoder.h"
#include "client/exchange/status_report.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "proto/frame.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

// Not thread-safe.
class GtopkReturns {
 public:
  // All arguments must outlive this object.
  GtopkReturns(const Partition& partition, PushEncoder& encoder, StatusReport& report);

  // Returns true if this object keeps the accepted pushes of SHARD.
  bool Keeps(ShardId shard) const { return slots_[shard.value].keeps; }
  // Returns true if any push still waits for its list of selected indices.
  bool pending() const { return pending_count_ > 0; }

  // Keeps PUSH or, if the list of its selected indices has already arrived, returns its unselected
  // values to the residual. Call once per push. Errors: errors of the encoder.
  absl::Status OnAccepted(const PushEntry& push);
  // Handles the list of selected indices in ENTRY, the last entry of an answer with a shard's
  // parameters. Errors: InvalidArgument "shard 3: selected: ..." for a malformed list, which is
  // ignored; errors of the encoder.
  absl::Status OnParameters(const ParametersEntry& entry);

 private:
  struct Slot {
    bool keeps = false;
    std::optional<PushEntry> push;
    // The frontier and the list of selected indices that arrived with the shard's newest
    // parameters.
    Step frontier;
    std::vector<uint32_t> selected;
  };

  absl::Status Return(const Slot& slot, const PushEntry& push);
  void CountLost() { report_.Count(WorkerCounters::kLostGtopkReturnsFieldNumber); }

  const Partition& partition_;
  PushEncoder& encoder_;
  StatusReport& report_;
  std::vector<Slot> slots_;  // indexed by shard number
  size_t pending_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_GTOPK_RETURNS_H_
