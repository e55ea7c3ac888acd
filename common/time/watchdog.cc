#include "common/time/watchdog.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <utility>

namespace thinwire {

Watchdog::Watchdog(std::function<void(Alive)> check) : check_(std::move(check)) {
  uint64_t limit_us = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &limit_us) <= 0) return;
  thread_ = std::thread([this, limit_us] { Run(absl::Microseconds(limit_us) / 3); });
}

Watchdog::~Watchdog() {
  ended_.Notify();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Run(absl::Duration interval) {
  do {
    check_([] { sd_notify(/*unset_environment=*/0, "WATCHDOG=1"); });
  } while (!ended_.WaitForNotificationWithTimeout(interval));
}

}  // namespace thinwire
