#include "common/time/virtual_time.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace thinwire {

class VirtualTime::VirtualExecutor final : public Executor {
 public:
  // PROCESS: null if it is never suspended.
  VirtualExecutor(VirtualTime& time, const VirtualProcess* process)
      : time_(time), process_(process) {}
  ~VirtualExecutor() override { Stop(); }

  const VirtualProcess* process() const { return process_; }
  absl::Time Now() override { return time_.Now(); }
  void Post(Task task) override { PostAt(Now(), std::move(task)); }
  void PostAt(absl::Time at, Task task) override {
    if (!stopped_) time_.Add(at - absl::UnixEpoch(), this, std::move(task));
  }
  void Run(absl::FunctionRef<void()> task) override {
    for (Event& event : time_.Remove(this, time_.elapsed_)) {
      if (!stopped_) event.task();
    }
    if (!stopped_) task();
  }
  void Finish() override {
    for (std::vector<Event> events; !(events = time_.Remove(this, time_.elapsed_)).empty();) {
      for (Event& event : events) {
        if (!stopped_) event.task();
      }
    }
    Stop();
  }
  void Stop() override {
    stopped_ = true;
    time_.Remove(this, absl::InfiniteDuration());
  }

 private:
  VirtualTime& time_;
  const VirtualProcess* const process_;
  bool stopped_ = false;
};

std::unique_ptr<Executor> VirtualTime::Make() {
  return std::make_unique<VirtualExecutor>(*this, nullptr);
}

std::unique_ptr<Executor> VirtualProcess::Make() {
  return std::make_unique<VirtualTime::VirtualExecutor>(time_, this);
}

bool VirtualTime::IsLater(const Event& a, const Event& b) {
  return std::tie(a.when, a.number) > std::tie(b.when, b.number);
}

VirtualTime::~VirtualTime() {
  // A task that is dropped may add others.
  while (!events_.empty()) std::exchange(events_, {}).clear();
}

void VirtualTime::Add(absl::Duration when, const VirtualExecutor* executor, Executor::Task task) {
  events_.push_back({std::max(when, elapsed_), number_++, executor, std::move(task)});
  std::ranges::push_heap(events_, IsLater);
}

void VirtualTime::RunNext() {
  std::ranges::pop_heap(events_, IsLater);
  Event event = std::move(events_.back());
  events_.pop_back();
  elapsed_ = event.when;
  const VirtualProcess* const process =
      event.executor == nullptr ? nullptr : event.executor->process();
  if (process != nullptr && process->is_suspended()) {
    // The tasks get new numbers in their old order.
    Add(process->suspended_until_, event.executor, std::move(event.task));
    return;
  }
  event.task();
}

std::vector<VirtualTime::Event> VirtualTime::Remove(const VirtualExecutor* executor,
                                                    absl::Duration end) {
  const auto stays = [=](const Event& event) {
    return event.executor != executor || event.when > end;
  };
  const auto removed = std::ranges::partition(events_, stays);
  std::vector<Event> events(std::move_iterator(removed.begin()), std::move_iterator(removed.end()));
  events_.erase(removed.begin(), removed.end());
  std::ranges::make_heap(events_, IsLater);
  std::ranges::sort(events, [](const Event& a, const Event& b) { return IsLater(b, a); });
  return events;
}

}  // namespace thinwire
