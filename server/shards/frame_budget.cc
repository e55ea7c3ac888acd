#include "server/shards/frame_budget.h"

#include <algorithm>
#include <utility>

#include "server/shards/memory_plan.h"

namespace thinwire {
namespace {

constexpr auto kReserve = static_cast<int64_t>(kFrameBytes);

}  // namespace

bool FrameBudget::TakeIfFree(int64_t bytes) {
  int64_t free = free_bytes_;
  while (free >= bytes) {
    if (free_bytes_.compare_exchange_weak(free, free - bytes)) return true;
  }
  return false;
}

bool FrameBudget::TryTake(int64_t bytes) { return waiting_count_ == 0 && TakeIfFree(bytes); }

void FrameBudget::Return(int64_t bytes) {
  free_bytes_ += bytes;
  if (waiting_count_ > 0) ServeWaiting();
}

void FrameBudget::Await(std::weak_ptr<FrameWindow> window) {
  {
    absl::MutexLock lock(&mu_);
    waiting_.push_back(std::move(window));
    waiting_count_ = waiting_.size();
  }
  // A thread that returned bytes before the window was counted has not served it.
  ServeWaiting();
}

void FrameBudget::ServeWaiting() {
  while (true) {
    std::shared_ptr<FrameWindow> first;
    {
      absl::MutexLock lock(&mu_);
      if (waiting_.empty() || !TakeIfFree(kReserve)) return;
      first = waiting_.front().lock();
      waiting_.pop_front();
      waiting_count_ = waiting_.size();
    }
    free_bytes_ += first == nullptr ? kReserve : first->OnTurn();
  }
}

FrameWindow::FrameWindow(FrameBudget& budget, int most_frames, std::function<void()> request)
    : budget_(budget), most_frames_(most_frames), request_(std::move(request)) {}

FrameWindow::~FrameWindow() {
  int64_t unused = 0;
  {
    absl::MutexLock lock(&mu_);
    unused = shared_bytes();
  }
  if (unused > 0) budget_.Return(unused);
}

int64_t FrameWindow::shared_bytes() const {
  return std::max<int64_t>(0, held_bytes_ + (awaits_frame_ ? kReserve : 0) - kReserve);
}

std::shared_ptr<const void> FrameWindow::Hold(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  budget_.held_bytes_ += size;
  int64_t added = 0;
  {
    absl::MutexLock lock(&mu_);
    const int64_t before = shared_bytes();
    awaits_frame_ = false;
    ++held_count_;
    held_bytes_ += size;
    added = shared_bytes() - before;
  }
  if (added > 0) budget_.Take(added);
  if (added < 0) budget_.Return(-added);
  return std::shared_ptr<const void>(
      this, [self = shared_from_this(), size](const void*) { self->Release(size); });
}

void FrameWindow::Proceed() {
  Step step;
  {
    absl::MutexLock lock(&mu_);
    busy_ = false;
    step = NextStep();
  }
  Perform(step);
}

void FrameWindow::Release(int64_t bytes) {
  budget_.held_bytes_ -= bytes;
  int64_t returned = 0;
  Step step;
  {
    absl::MutexLock lock(&mu_);
    const int64_t before = shared_bytes();
    --held_count_;
    held_bytes_ -= bytes;
    returned = before - shared_bytes();
    step = NextStep();
  }
  if (returned > 0) budget_.Return(returned);
  Perform(step);
}

FrameWindow::Step FrameWindow::NextStep() {
  if (busy_ || held_count_ >= most_frames_) return Step::kNone;
  if (held_count_ > 0) {
    if (waiting_) return Step::kNone;
    // The bytes by which the request raises shared_bytes().
    if (!budget_.TryTake(std::min(held_bytes_, kReserve))) {
      waiting_ = true;
      return Step::kAwait;
    }
  }
  busy_ = true;
  awaits_frame_ = true;
  return Step::kRequest;
}

void FrameWindow::Perform(Step step) {
  if (step == Step::kRequest) request_();
  if (step == Step::kAwait) budget_.Await(weak_from_this());
}

int64_t FrameWindow::OnTurn() {
  int64_t used = 0;
  {
    absl::MutexLock lock(&mu_);
    waiting_ = false;
    // Meanwhile, the stream may have released all frames and requested the next one.
    if (busy_ || held_count_ >= most_frames_) return kReserve;
    used = std::min(held_bytes_, kReserve);
    busy_ = true;
    awaits_frame_ = true;
  }
  request_();
  return kReserve - used;
}

}  // namespace thinwire
