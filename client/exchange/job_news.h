// JobNews: what the servers' replies to heartbeats tell about the job: the live workers, the
// evaluator, the next checkpoint of the servers, and the step before which all workers stop.
#ifndef THINWIRE_CLIENT_EXCHANGE_JOB_NEWS_H_
#define THINWIRE_CLIENT_EXCHANGE_JOB_NEWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Thread-safe. The functions that wait return after TIMEOUT at the latest, and at once between
// EndWaits and Resume.
class JobNews {
 public:
  // Records the news in REPLY of SERVER.
  void Add(ServerId server, const HeartbeatReply& reply);
  // The servers go back to an earlier step. Until the worker has joined them again, nothing is worth a
  // wait.
  void EndWaits();
  // The worker has joined them again. Forgets the announced checkpoint.
  void Resume();

  // Returns the live workers that server 0 has reported last, ascending. Only server 0 knows all
  // live workers.
  std::vector<WorkerId> live() const;
  // Returns the workers except WORKER that any server has reported as live, ascending.
  std::vector<WorkerId> LiveExcept(WorkerId worker) const;
  // Returns the step of the newest checkpoint that the servers have announced; nullopt if there is
  // none.
  std::optional<Step> checkpoint_step() const;
  // Returns the number of replies of server 0.
  uint64_t lead_reply_count() const;

  // Blocks until server 0 has replied COUNT times. Returns false if it has not.
  bool WaitForLeadReplies(uint64_t count, absl::Duration timeout) const;
  // Blocks until each of SERVER_COUNT servers has reported live workers, and none except WORKER.
  // Returns false if one has not.
  bool WaitUntilAlone(WorkerId worker, uint32_t server_count, absl::Duration timeout) const;
  // Blocks until server 0 has named an evaluator. Returns the last one; nullopt: none.
  std::optional<WorkerId> WaitForEvaluator(absl::Duration timeout) const;
  // Blocks until the step before which all live workers stop is known. Returns it; nullopt: unknown.
  std::optional<Step> WaitForStopStep(absl::Duration timeout) const;

 private:
  // Blocks until READY(). Returns whether it is.
  bool Await(absl::FunctionRef<bool()> ready, absl::Duration timeout) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<WorkerId> LiveExceptLocked(WorkerId worker) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::map<ServerId, std::vector<WorkerId>> live_ ABSL_GUARDED_BY(mu_);  // by reporting server
  bool waits_end_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t lead_reply_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<WorkerId> evaluator_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> checkpoint_step_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> stop_step_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_JOB_NEWS_H_
