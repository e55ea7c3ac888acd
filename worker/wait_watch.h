// WaitWatch: tells when the text of what a worker waits for has changed, also while the training
// thread is blocked in that very wait.
#ifndef THINWIRE_WORKER_WAIT_WATCH_H_
#define THINWIRE_WORKER_WAIT_WATCH_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire {

// Its thread looks every INTERVAL, so what came and went in between is not told.
class WaitWatch {
 public:
  // WAITING gives the text, CHANGED hears a new one; both are called from the watch's thread.
  WaitWatch(std::function<std::string()> waiting, std::function<void(const std::string&)> changed,
            absl::Duration interval = absl::Milliseconds(250));
  // No call comes after it.
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

 private:
  void Run();

  // Constant after construction.
  const std::function<std::string()> waiting_;
  const std::function<void(const std::string&)> changed_;
  const absl::Duration interval_;

  absl::Mutex mu_;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_WAIT_WATCH_H_
