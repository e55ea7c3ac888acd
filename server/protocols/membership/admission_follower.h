// AdmissionFollower admits this server to the run of the lead (admission_lead.h), and learns the
// worker processes that the lead announces.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_FOLLOWER_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_FOLLOWER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/membership/training_start.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"

namespace thinwire {

class AdmissionFollower final : public Protocol {
 public:
  // The arguments must outlive this object.
  AdmissionFollower(JobState& state, TrainingStart& start, WorkerTokens& tokens,
                    StoredState& stored)
      : state_(state), start_(start), tokens_(tokens), stored_(stored) {}

  // REQUIRES: CheckAdmit (server/job/request_checks.h) returned OK.
  void Admit(const AdmitRequest& request,
             const std::function<void(absl::StatusOr<AdmitReply>)>& done);

 private:
  JobState& state_;
  TrainingStart& start_;
  WorkerTokens& tokens_;
  StoredState& stored_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_FOLLOWER_H_
