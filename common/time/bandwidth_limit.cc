#include "common/time/bandwidth_limit.h"

#include <algorithm>
#include <utility>

namespace thinwire {

void BandwidthLimit::Await(Executor::Task task) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back(std::move(task));
  if (waiting_.size() == 1) PostNext();
}

void BandwidthLimit::Spend(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  paid_at_ = std::max(paid_at_, executor_->Now()) +
             absl::Seconds(static_cast<double>(bytes) / bytes_per_second_);
}

void BandwidthLimit::Lift() {
  absl::MutexLock lock(&mu_);
  lifted_ = true;
  if (!waiting_.empty()) PostNext();
}

void BandwidthLimit::PostNext() {
  executor_->PostAt(lifted_ ? executor_->Now() : std::max(paid_at_, executor_->Now()),
                    [this] { RunNext(); });
}

void BandwidthLimit::RunNext() {
  Executor::Task task;
  {
    absl::MutexLock lock(&mu_);
    if (waiting_.empty()) return;  // the limit was lifted, and an earlier call ran the task
    // A message that a task has requested may have arrived meanwhile.
    if (!lifted_ && executor_->Now() < paid_at_) return PostNext();
    task = std::move(waiting_.front());
  }
  task();
  task = nullptr;
  absl::MutexLock lock(&mu_);
  // The task stays in the queue while it runs, so that Await does not post another call.
  waiting_.pop_front();
  if (!waiting_.empty()) PostNext();
}

Bandwidth::Bandwidth(const BandwidthRates& rates, ExecutorFactory& factory) {
  if (rates.up > 0) up = std::make_shared<BandwidthLimit>(rates.up, factory.Make());
  if (rates.down > 0) down = std::make_shared<BandwidthLimit>(rates.down, factory.Make());
}

}  // namespace thinwire
