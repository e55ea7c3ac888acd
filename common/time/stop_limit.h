// StopLimit ends a process that does not end by itself.
//
//   StopLimit limit(absl::Seconds(15), [&] { return "open calls: " + listener->OpenCalls(); });
//   listener->Stop(absl::Seconds(5));
#ifndef THINWIRE_COMMON_TIME_STOP_LIMIT_H_
#define THINWIRE_COMMON_TIME_STOP_LIMIT_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {

class StopLimit {
 public:
  // If this object still exists after LIMIT, logs the result of AWAITED, the name of the unfinished
  // work, and ends the process at once with ExitCode::kSoftware. AWAITED runs on another thread.
  StopLimit(absl::Duration limit, std::function<std::string()> awaited);
  // Blocks while AWAITED runs.
  ~StopLimit();
  StopLimit(const StopLimit&) = delete;
  StopLimit& operator=(const StopLimit&) = delete;

 private:
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_STOP_LIMIT_H_
