// TrainingStart opens the shards of this server when workers are missing, and shuts them when
// training begins again (docs/consistency.md).
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_TRAINING_START_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_TRAINING_START_H_

#include <optional>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class TrainingStart final : public Protocol {
 public:
  // LEASE and START_TIMEOUT: of the job. The other arguments must outlive this object.
  TrainingStart(absl::Duration lease, absl::Duration start_timeout, JobState& state,
                ModelSlot& model, Clock& clock)
      : lease_(lease), start_timeout_(start_timeout), state_(state), model_(model), clock_(clock) {}

  // Continues with the members of the restored state. IN_SHARDS: the shards have applied the events
  // of all members.
  void ContinueMembers(bool in_shards);
  // Training begins as at the start of the job: it waits for all workers, or for the start timeout
  // after the first Join.
  void BeginAgain();

  // A worker has joined. HAD_BEGUN: JoinRequest.had_begun.
  void Join(bool had_begun);
  // Returns whether training has begun without some workers.
  bool timed_out() const { return timed_out_; }
  void Tick(absl::Time now) override;

 private:
  const absl::Duration lease_;
  const absl::Duration start_timeout_;
  JobState& state_;
  ModelSlot& model_;
  Clock& clock_;
  std::optional<absl::Time> first_join_;
  bool had_begun_ = false;  // a process that had trained before a rollback has come back
  bool timed_out_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_TRAINING_START_H_
