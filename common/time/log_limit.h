// LogLimit bounds the log lines that a peer or a fault can repeat. Some lines may follow each other
// at once; after them, one line per interval. The next line says how many lines were left out.
//
//   if (const auto more = limit.Next(clock.Now())) LOG(INFO) << "worker 3 joined" << *more;
#ifndef THINWIRE_COMMON_TIME_LOG_LIMIT_H_
#define THINWIRE_COMMON_TIME_LOG_LIMIT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire {

// Thread-safe.
class LogLimit {
 public:
  // BURST lines may follow each other at once. Each INTERVAL allows one more line, up to BURST.
  // REQUIRES: both are positive.
  LogLimit(int burst, absl::Duration interval) : burst_(burst), interval_(interval) {}

  // Returns the end of a line that is logged at NOW: "" or, after lines that were left out, " (41
  // more like this)". Returns nullopt if the line must not be logged.
  std::optional<std::string> Next(absl::Time now) {
    absl::MutexLock lock(&mu_);
    // A limit that was not used for a while is as a new one.
    full_at_ = std::max(full_at_, now);
    if (full_at_ + interval_ > now + burst_ * interval_) {
      ++suppressed_count_;
      return std::nullopt;
    }
    full_at_ += interval_;
    const uint64_t count = std::exchange(suppressed_count_, 0);
    return count == 0 ? "" : absl::StrCat(" (", count, " more like this)");
  }

 private:
  const int burst_;
  const absl::Duration interval_;
  absl::Mutex mu_;
  // The time at which BURST lines are allowed again. Each line moves it by one interval.
  absl::Time full_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t suppressed_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_LOG_LIMIT_H_
