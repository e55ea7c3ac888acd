// VirtualTime runs functions in the order of their virtual times. Functions with equal times run in
// the order in which they were added, so a run is deterministic. The time advances only from one
// function to the next.
#ifndef THINWIRE_COMMON_TIME_VIRTUAL_TIME_H_
#define THINWIRE_COMMON_TIME_VIRTUAL_TIME_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/time/executor.h"

namespace thinwire {

class VirtualProcess;

// Not thread-safe.
class VirtualTime final : public ExecutorFactory {
 public:
  VirtualTime() = default;
  ~VirtualTime() override;
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  // Returns the time since the beginning, which is absl::UnixEpoch().
  absl::Duration elapsed() const { return elapsed_; }
  absl::Time Now() override { return absl::UnixEpoch() + elapsed_; }
  // All executors run their tasks in RunNext. A task may call Run, Stop and Finish of another
  // executor.
  std::unique_ptr<Executor> Make() override;

  // Calls TASK when WHEN has elapsed, or now if WHEN is in the past.
  void At(absl::Duration when, Executor::Task task) { Add(when, nullptr, std::move(task)); }
  void After(absl::Duration delay, Executor::Task task) { At(elapsed_ + delay, std::move(task)); }

  bool empty() const { return events_.empty(); }
  // Returns the time of the next function; InfiniteDuration if there is none.
  absl::Duration next() const { return empty() ? absl::InfiniteDuration() : events_.front().when; }
  // Runs the next function, or puts it off if its process is suspended. REQUIRES: !empty().
  void RunNext();

 private:
  friend class VirtualProcess;
  class VirtualExecutor;
  struct Event {
    absl::Duration when;
    uint64_t number;
    const VirtualExecutor* executor;  // null: none
    Executor::Task task;
  };
  static bool IsLater(const Event& a, const Event& b);

  void Add(absl::Duration when, const VirtualExecutor* executor, Executor::Task task);
  // Removes the events of EXECUTOR up to the time END, and returns them in their order.
  std::vector<Event> Remove(const VirtualExecutor* executor, absl::Duration end);

  std::vector<Event> events_;  // a heap; the next event is in front
  absl::Duration elapsed_;
  uint64_t number_ = 0;
};

// VirtualProcess makes the executors of one process, which can be suspended as by SIGSTOP: none of
// its tasks runs for a while, and then all run in their order. Its clock goes on. Not thread-safe.
class VirtualProcess final : public ExecutorFactory {
 public:
  // TIME must outlive this object.
  explicit VirtualProcess(VirtualTime& time) : time_(time) {}

  absl::Time Now() override { return time_.Now(); }
  std::unique_ptr<Executor> Make() override;

  // Suspends the process for DURATION from now; 0: it continues. Tasks that were put off before keep
  // their new times.
  void Suspend(absl::Duration duration) { suspended_until_ = time_.elapsed() + duration; }
  bool is_suspended() const { return suspended_until_ > time_.elapsed(); }

 private:
  friend class VirtualTime;

  VirtualTime& time_;
  absl::Duration suspended_until_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_VIRTUAL_TIME_H_
