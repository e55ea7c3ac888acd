// ControlThread runs the functions of a job in the order in which they were posted, on one thread.
// After StartTicking, it also runs one function at intervals, and notices a suspension of this
// process.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_CONTROL_THREAD_H_
#define THINWIRE_SERVER_EDGE_CONTROL_THREAD_H_

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire {

class ControlThread {
 public:
  // Runs a function later, on the control thread.
  using PostFunction = std::function<void(std::function<void()>)>;

  // A ticking thread that did not run for longer than LIMIT first calls SUSPENDED with this time.
  // CLOCK must outlive the ControlThread.
  ControlThread(Clock& clock, absl::Duration limit, std::function<void(absl::Duration)> suspended)
      : clock_(clock), limit_(limit), suspended_(std::move(suspended)) {}

  // Calls WORK on the thread, after all work that was posted earlier.
  template <typename Work>
  void Post(Work work) {
    boost::asio::post(thread_, [this, work = std::move(work)]() mutable { Run(work); });
  }
  // Returns Post as a function, which must not be called after the end of this object.
  PostFunction post() {
    return [this](std::function<void()> work) { Post(std::move(work)); };
  }

  // Calls TICK on the thread at intervals of EVERY from now on. Call at most once.
  void StartTicking(absl::Duration every, std::function<void()> tick);

  // Blocks until the current work has returned. Work that is still queued or posted later never
  // runs.
  void Stop();

 private:
  template <typename Work>
  void Run(Work& work) {
    NoticeSuspension();
    work();
  }
  void NoticeSuspension();
  void Wait();

  Clock& clock_;
  const absl::Duration limit_;
  const std::function<void(absl::Duration)> suspended_;

  // Only the thread uses these.
  absl::Duration every_;
  std::function<void()> tick_;
  std::optional<absl::Time> last_run_;  // nullopt: not ticking

  boost::asio::thread_pool thread_{1};
  boost::asio::steady_timer timer_{thread_};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CONTROL_THREAD_H_
