// ServerHistory keeps the newest StatusReply of one server and the times that the reply does not
// have, such as how long the open step has been open, and the curves of the training.
#ifndef THINWIRE_ADMIN_SERVER_HISTORY_H_
#define THINWIRE_ADMIN_SERVER_HISTORY_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "admin/training_curves.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// Not thread-safe.
class ServerHistory {
 public:
  explicit ServerHistory(ServerId server) : server_(server) {}

  // A server without a new reply for this time is unreachable, also if its call is pending.
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(10);

  // Record a reply that arrived at NOW, and a call that failed at NOW.
  void Add(StatusReply reply, absl::Time now);
  void AddFailure(absl::Time now);

  ServerId server() const { return server_; }
  // Returns the newest reply; null if the server has not answered yet.
  const StatusReply* latest() const { return latest_ ? &*latest_ : nullptr; }
  absl::Time answered() const { return answered_; }
  // Returns the time without an answer if the last call failed or the newest reply is older than
  // kAnswerLimit, and 0 otherwise, also if the server was never asked.
  absl::Duration outage(absl::Time now) const;
  // Returns the newest reply if the server has no outage; otherwise null.
  const StatusReply* current(absl::Time now) const {
    return outage(now) > absl::ZeroDuration() ? nullptr : latest();
  }
  // Returns the first step that some shard has not finished.
  uint64_t step() const { return step_; }
  // Returns the time from the first to the newest reply in which step() was the open step: at most
  // as long as the step has really been open.
  absl::Duration step_age() const { return answered_ - step_since_; }
  // Returns the time at which the newest checkpoint was first seen; nullopt if there is none.
  std::optional<absl::Time> checkpointed() const { return checkpointed_; }
  // Returns the training as this server's replies state it; only those of the lead do.
  const TrainingCurves& curves() const { return curves_; }
  // Return the part of the log since the newest checkpoint, which a recovery would replay.
  uint64_t replay_record_count() const;
  uint64_t replay_bytes() const;

 private:
  const ServerId server_;
  std::optional<StatusReply> latest_;
  absl::Time answered_;
  std::optional<absl::Time> failed_since_;  // the first failed call after the newest reply
  uint64_t step_ = 0;
  absl::Time step_since_;  // the arrival of the first reply with `step_`
  std::optional<absl::Time> checkpointed_;
  TrainingCurves curves_;
  uint64_t checkpoint_record_count_ = 0;  // log_records at `checkpointed_`
  uint64_t checkpoint_log_bytes_ = 0;     // log_bytes at `checkpointed_`
};

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_HISTORY_H_
