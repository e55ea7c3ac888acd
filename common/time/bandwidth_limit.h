// BandwidthLimit keeps the bytes that a process sends, or those that it receives, below a rate. It
// is a token bucket without a store: an idle time earns no credit, and a message that has begun
// goes on as a whole, so the next one waits until it is paid.
//
//   limit.Await([&] { Write(message); limit.Spend(message.size()); });
//
//   Await   ->  queue  ->  the first task runs when all bytes spent so far are paid  ->  Spend
//
// Between two points in time that are T apart, the tasks spend at most rate * T and the bytes of
// one message, or of one message per task that spends after it has returned, such as one that
// requests a message.
#ifndef THINWIRE_COMMON_TIME_BANDWIDTH_LIMIT_H_
#define THINWIRE_COMMON_TIME_BANDWIDTH_LIMIT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/time/executor.h"

namespace thinwire {

// Thread-safe.
class BandwidthLimit {
 public:
  // EXECUTOR, which nothing else uses, runs the tasks. REQUIRES: BYTES_PER_SECOND is positive.
  BandwidthLimit(double bytes_per_second, std::unique_ptr<Executor> executor)
      : bytes_per_second_(bytes_per_second), executor_(std::move(executor)) {}
  // Drops the waiting tasks. REQUIRES: not called from a task.
  ~BandwidthLimit() { executor_->Stop(); }
  BandwidthLimit(const BandwidthLimit&) = delete;
  BandwidthLimit& operator=(const BandwidthLimit&) = delete;

  // Runs TASK after all earlier tasks, when the bytes spent so far are paid. Returns without
  // waiting.
  void Await(Executor::Task task) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts BYTES as spent: the next task waits until they and all earlier bytes are paid.
  void Spend(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the limit: runs all waiting tasks, and later ones without a wait. For a process that ends.
  void Lift() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void PostNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunNext() ABSL_LOCKS_EXCLUDED(mu_);

  const double bytes_per_second_;
  const std::unique_ptr<Executor> executor_;
  absl::Mutex mu_;
  bool lifted_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time paid_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::deque<Executor::Task> waiting_ ABSL_GUARDED_BY(mu_);
};

// Bytes per second in both directions; 0: no limit.
struct BandwidthRates {
  double up = 0;
  double down = 0;

  bool operator==(const BandwidthRates&) const = default;
};

// The limits of a process; null: none.
struct Bandwidth {
  Bandwidth() = default;
  // FACTORY must outlive the limits.
  Bandwidth(const BandwidthRates& rates, ExecutorFactory& factory);

  std::shared_ptr<BandwidthLimit> up;
  std::shared_ptr<BandwidthLimit> down;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_BANDWIDTH_LIMIT_H_
