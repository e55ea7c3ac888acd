// Stopwatch: how long training took, without the times when it was stopped.
#ifndef THINWIRE_WORKER_STOPWATCH_H_
#define THINWIRE_WORKER_STOPWATCH_H_

#include "absl/time/time.h"
#include "common/clock.h"

namespace thinwire {

// Not thread-safe. Stands still at first.
class Stopwatch {
 public:
  // CLOCK outlives the stopwatch.
  explicit Stopwatch(Clock& clock) : clock_(clock) {}

  void Start() {
    started_ = clock_.Now();
    runs_ = true;
  }
  void Stop() {
    before_ = elapsed();
    runs_ = false;
  }
  absl::Duration elapsed() const { return runs_ ? before_ + (clock_.Now() - started_) : before_; }

 private:
  Clock& clock_;
  absl::Time started_;
  absl::Duration before_;
  bool runs_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_STOPWATCH_H_
