// PrecisionLead chooses the push codec by trials, at the lead of a job with push: adaptive. It tells
// StoredTrials the tests of the workers and the progress of this server, and sends all processes
// back to the snapshots of the trials.
#ifndef THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_LEAD_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/push_spec.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/precision/stored_trials.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class PrecisionLead final : public Protocol {
 public:
  // The arguments must outlive this object.
  PrecisionLead(const AdaptiveSpec& spec, const DurableOptions& durable, JobState& state,
                JobCheckpoints& checkpoints, const ServerShards& shards)
      : durable_(durable),
        state_(state),
        checkpoints_(checkpoints),
        shards_(shards),
        trials_(spec, *durable.files, durable.folder, state.dealer) {}

  // Returns whether a checkpoint of the shards fits the trials (StoredTrials::MaySave).
  bool MaySave() const { return trials_.MaySave(shards_.frontier()); }

  // Errors: those of StoredTrials::Start.
  absl::Status Begin() override;
  void Tick(absl::Time now) override;
  void Heard(const HeartbeatRequest& request) override;
  void FillIn(WorkerId worker, JoinReply& reply) override;
  void FillIn(StatusReply& reply) const override { trials_.FillIn(reply); }

 private:
  // Sends all processes back to a snapshot if it is due.
  void Adapt();

  const DurableOptions& durable_;
  JobState& state_;
  JobCheckpoints& checkpoints_;
  const ServerShards& shards_;
  StoredTrials trials_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PRECISION_PRECISION_LEAD_H_
