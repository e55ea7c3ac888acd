// Clock: the only way this code learns the time, so that tests can set it.
#ifndef THINWIRE_COMMON_CLOCK_H_
#define THINWIRE_COMMON_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace thinwire {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Never falls.
  virtual absl::Time Now() = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CLOCK_H_
