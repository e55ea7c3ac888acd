// ControlExecutor is the executor of a job's decisions, its control thread. After StartTicking, it
// also runs one function at intervals, and notices a suspension of this process.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_JOB_CONTROL_EXECUTOR_H_
#define THINWIRE_SERVER_JOB_CONTROL_EXECUTOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/executor.h"

namespace thinwire {

class ControlExecutor final : public Executor {
 public:
  // Runs the tasks on EXECUTOR. If an executor that ticks did not run for longer than LIMIT, it
  // calls SUSPENDED with this time before the next task. CLOCK, which measures this time, must
  // outlive the ControlExecutor.
  ControlExecutor(std::unique_ptr<Executor> executor, Clock& clock, absl::Duration limit,
                  std::function<void(absl::Duration)> suspended)
      : clock_(clock),
        limit_(limit),
        suspended_(std::move(suspended)),
        executor_(std::move(executor)) {}

  // Calls TICK at intervals of EVERY from now on. Call at most once.
  void StartTicking(absl::Duration every, std::function<void()> tick);

  absl::Time Now() override { return executor_->Now(); }
  void Post(Task task) override { executor_->Post(Noticing(std::move(task))); }
  void PostAt(absl::Time at, Task task) override {
    executor_->PostAt(at, Noticing(std::move(task)));
  }
  void Run(absl::FunctionRef<void()> task) override {
    executor_->Run([&] {
      NoticeSuspension();
      task();
    });
  }
  void Stop() override { executor_->Stop(); }
  void Finish() override { executor_->Finish(); }

 private:
  // Returns a task that notices a suspension and calls TASK.
  Task Noticing(Task task) {
    return [this, task = std::move(task)]() mutable {
      NoticeSuspension();
      task();
    };
  }
  void NoticeSuspension();
  void WaitForTick();

  Clock& clock_;
  const absl::Duration limit_;
  const std::function<void(absl::Duration)> suspended_;

  // Only tasks use these.
  absl::Duration every_;
  std::function<void()> tick_;
  std::optional<absl::Time> last_run_;  // nullopt: not ticking

  const std::unique_ptr<Executor> executor_;  // last, because its tasks use the members above
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_CONTROL_EXECUTOR_H_
