#include "admin/training_curves.h"

namespace thinwire {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
// The lead is asked about once a second, so the ends of a shorter window are too uncertain.
constexpr absl::Duration kLeastWindow = absl::Seconds(3);

}  // namespace

void TrainingCurves::Add(const StatusReply& reply, uint64_t step, absl::Time now) {
  if (!samples_.empty() && step < samples_.back().step) samples_.clear();
  samples_.push_back({now, step});
  while (samples_[0].time < now - kWindow && samples_.size() > 2) samples_.pop_front();
  const std::optional<double> loss = MeanLossOf(reply);
  if (loss.has_value() && step >= next_step_) {
    loss_.Add(static_cast<double>(step), *loss);
    next_step_ = step + 1;
  }
  const ModelTest* const test = NewestTestOf(reply);
  if (test == nullptr || test->step() < next_test_) return;
  const double x = static_cast<double>(test->step());
  if (test->has_accuracy()) accuracy_.Add(x, test->accuracy());
  if (test->has_loss()) test_loss_.Add(x, test->loss());
  next_test_ = test->step() + 1;
}

std::optional<double> TrainingCurves::steps_per_second() const {
  if (samples_.empty()) return std::nullopt;
  const absl::Duration time = samples_.back().time - samples_.front().time;
  const uint64_t steps = samples_.back().step - samples_.front().step;
  if (time < kLeastWindow || steps == 0) return std::nullopt;
  return static_cast<double>(steps) / absl::ToDoubleSeconds(time);
}

const WorkerProgress* ProgressOf(const StatusReply& reply, uint32_t worker) {
  const auto found = reply.progress().find(worker);
  return found == reply.progress().end() ? nullptr : &found->second;
}

std::optional<double> MeanLossOf(const StatusReply& reply) {
  double sum = 0;
  int count = 0;
  for (const WorkerStatus& worker : reply.workers()) {
    const WorkerProgress* const progress = ProgressOf(reply, worker.worker());
    if (!worker.live() || progress == nullptr || !progress->has_loss()) continue;
    sum += progress->loss();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

const ModelTest* NewestTestOf(const StatusReply& reply) {
  const ModelTest* newest = nullptr;
  for (const auto& [worker, progress] : reply.progress()) {
    if (!progress.has_test()) continue;
    if (newest == nullptr || progress.test().step() > newest->step()) newest = &progress.test();
  }
  return newest;
}

}  // namespace thinwire
