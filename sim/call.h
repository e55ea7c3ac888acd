// StartCall: a call of a process of a simulated cluster to a job. The call and its reply take the
// latency of the links.
#ifndef THINWIRE_SIM_CALL_H_
#define THINWIRE_SIM_CALL_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/time/virtual_time.h"
#include "server/job/job.h"

namespace thinwire::sim {

struct CallSetting {
  VirtualTime& time;
  std::function<Job*()> reach;  // returns the job at which the call arrives; null: it is refused
  absl::Duration latency;       // one way
  absl::Duration timeout;
  std::shared_ptr<const bool> alive;  // whether the caller's process exists
};

// A call between its two ends. The job destroys it unanswered if its process ends.
template <typename Reply>
class PendingCall {
 public:
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  PendingCall(CallSetting setting, Done done)
      : time_(setting.time),
        latency_(setting.latency),
        reach_(std::move(setting.reach)),
        caller_(std::make_shared<Caller>(Caller{std::move(setting.alive), std::move(done)})) {
    time_.After(setting.timeout, [caller = caller_, timeout = setting.timeout] {
      caller->End(absl::DeadlineExceededError(
          absl::StrCat("no answer (timeout ", absl::FormatDuration(timeout), ")")));
    });
  }
  ~PendingCall() { Answer(absl::UnavailableError("connection reset")); }

  // The server has answered. The reply is lost if the connection is cut meanwhile.
  void Answer(absl::StatusOr<Reply> reply) {
    if (std::exchange(answered_, true)) return;
    time_.After(latency_, [caller = caller_, reach = reach_, reply = std::move(reply)] {
      if (!reply.ok() || reach() != nullptr) caller->End(reply);
    });
  }
  // Returns whether the caller no longer waits.
  bool abandoned() const { return caller_->done == nullptr || !*caller_->alive; }

 private:
  struct Caller {
    void End(absl::StatusOr<Reply> reply) {
      const auto called = std::exchange(done, nullptr);
      if (called != nullptr && *alive) called(std::move(reply));
    }
    std::shared_ptr<const bool> alive;
    Done done;  // null: it was called
  };

  VirtualTime& time_;
  const absl::Duration latency_;
  const std::function<Job*()> reach_;
  const std::shared_ptr<Caller> caller_;
  bool answered_ = false;
};

// Calls START(job, call) when the call arrives at a job. DONE receives the answer, or the error of
// the connection, or DeadlineExceeded after the timeout, while the caller's process exists.
template <typename Reply>
void StartCall(const CallSetting& setting,
               std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
               typename PendingCall<Reply>::Done done) {
  const auto call = std::make_shared<PendingCall<Reply>>(setting, std::move(done));
  setting.time.After(setting.latency, [call, reach = setting.reach, start = std::move(start)] {
    Job* const job = reach();
    if (job == nullptr) return call->Answer(absl::UnavailableError("connection refused"));
    start(*job, call);
  });
}

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_CALL_H_
