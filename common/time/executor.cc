#include "common/time/executor.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace thinwire {

void Executor::Run(absl::FunctionRef<void()> task) {
  absl::Notification done;
  // The deleter of `guard` notifies `done` when the executor destroys the task, either after
  // running or after dropping the task.
  std::shared_ptr<void> guard(nullptr, [&done](void*) { done.Notify(); });
  Post([guard = std::move(guard), task] { task(); });
  done.WaitForNotification();
}

}  // namespace thinwire
