// Watchdog tells systemd at regular intervals that this process works (sd_notify, WATCHDOG=1).
// systemd kills a service of a unit with WatchdogSec= that is silent for that time, for example
// because its control thread hangs. In a process without such a unit, a Watchdog does nothing.
//
//   Watchdog watchdog([&job](Watchdog::Alive alive) { job.Tick(alive); });
#ifndef THINWIRE_COMMON_TIME_WATCHDOG_H_
#define THINWIRE_COMMON_TIME_WATCHDOG_H_

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {

// Thread-safe.
class Watchdog {
 public:
  using Alive = std::function<void()>;

  // Calls CHECK three times per WatchdogSec=, on a thread of this object. CHECK passes its argument
  // to the part of the process that must work. That part calls it, on any thread, also after the
  // end of this object; each call notifies systemd.
  explicit Watchdog(std::function<void(Alive)> check);
  // Blocks until the last call of CHECK has returned.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Run(absl::Duration interval);

  const std::function<void(Alive)> check_;
  absl::Notification ended_;
  std::thread thread_;  // not joinable: systemd does not watch this process
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_WATCHDOG_H_
