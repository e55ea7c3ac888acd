// Clock: the only source of time in thinwire. Tests use a clock whose time they set.
#ifndef THINWIRE_COMMON_TIME_CLOCK_H_
#define THINWIRE_COMMON_TIME_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire {

// A clock whose Now() never decreases. The time counts from an arbitrary start and is not a
// calendar date. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
};

// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  absl::Time Now() override;
};

// A clock whose time changes only when Advance is called. For tests.
class ManualClock final : public Clock {
 public:
  absl::Time Now() override;
  void Advance(absl::Duration by);

 private:
  absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_) = absl::UnixEpoch();
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_CLOCK_H_
