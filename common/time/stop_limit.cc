#include "common/time/stop_limit.h"

#include <glog/logging.h>
#include <unistd.h>

#include <utility>

#include "common/base/exit_code.h"

namespace thinwire {

StopLimit::StopLimit(absl::Duration limit, std::function<std::string()> awaited)
    : thread_([this, limit, awaited = std::move(awaited)] {
        if (ended_.WaitForNotificationWithTimeout(limit)) return;
        LOG(ERROR) << "still waiting after " << limit << " (" << awaited()
                   << "): this process ends now";
        _exit(static_cast<int>(ExitCode::kSoftware));
      }) {}

StopLimit::~StopLimit() {
  ended_.Notify();
  thread_.join();
}

}  // namespace thinwire
