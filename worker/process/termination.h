// Termination handles stop signals (common/base/process_setup.h). The first signal is a request to stop
// and calls a callback, so that the worker ends its waits and leaves the job in order. A second
// SIGTERM or SIGINT ends the process at once with the exit code 128 + signal number. A second
// SIGHUP does nothing, because a closed terminal and the end of a login may send it again.
#ifndef THINWIRE_WORKER_PROCESS_TERMINATION_H_
#define THINWIRE_WORKER_PROCESS_TERMINATION_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {

// Create one object per process, at the beginning of main. A Termination installs signal handlers.
// Blocking the signals instead would not be enough: OpenBLAS starts threads before main that do not
// block signals, and a signal that arrives at such a thread would kill the process.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Returns true once a signal has arrived. Thread-safe.
  bool requested() const { return requested_.HasBeenNotified(); }
  // Blocks until a signal has arrived or LONGEST has passed. Returns requested(). Thread-safe.
  bool WaitFor(absl::Duration longest) const {
    return requested_.WaitForNotificationWithTimeout(longest);
  }
  // Calls CALLBACK, from a thread of this object, when the first signal arrives, or at once if it
  // has arrived. Replaces the previous callback; when this function returns, the previous callback
  // is not running. CALLBACK may be null. Thread-safe. REQUIRES: not called from a callback.
  void SetCallback(std::function<void()> callback);

 private:
  void Await();

  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_};
  absl::Notification requested_;
  std::function<void()> callback_;  // only the thread uses it
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_TERMINATION_H_
