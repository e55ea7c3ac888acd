// UnixClock: a clock whose time counts from the Unix epoch and never decreases. It adds steady time
// to the date of its construction, so a later correction of the system's date does not change it.
#ifndef THINWIRE_COMMON_TIME_UNIX_CLOCK_H_
#define THINWIRE_COMMON_TIME_UNIX_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire {

// Thread-safe.
class UnixClock final : public Clock {
 public:
  absl::Time Now() override { return start_ + (steady_.Now() - steady_start_); }

 private:
  SteadyClock steady_;
  const absl::Time start_ = absl::Now();
  const absl::Time steady_start_ = steady_.Now();
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_UNIX_CLOCK_H_
