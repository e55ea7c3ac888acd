#include "worker/trainer/training_report.h"

#include <utility>

#include "common/base/median.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kReportInterval = absl::Milliseconds(200);

}  // namespace

void TrainingReport::AddPass(const BatchResult& result) {
  examples_ += result.examples;
  since_report_ += result;
  epoch_ += result;
}

void TrainingReport::AddStep(absl::Duration time) {
  ++steps_;
  step_seconds_.push_back(static_cast<float>(absl::ToDoubleSeconds(time)));
}

absl::Duration TrainingReport::median_step() const { return absl::Seconds(Median(step_seconds_)); }

void TrainingReport::Joined(Step step) {
  WorkerEvent event;
  event.mutable_joined()->set_step(step.value);
  event.mutable_joined()->set_device(options_.device);
  event.mutable_joined()->set_planned_steps(parts_.sampler.EpochBegin(options_.epochs).value);
  parts_.events.Write(std::move(event));
}

void TrainingReport::Progress(Step step) {
  const absl::Time now = parts_.clock.Now();
  if (last_report_ && now - *last_report_ < kReportInterval) return;
  last_report_ = now;
  WorkerEvent event;
  WorkerEvent::Step& progress = *event.mutable_step();
  progress.set_step(step.value);
  progress.set_epoch(static_cast<uint32_t>(parts_.sampler.epoch(step)));
  if (since_report_.examples > 0) progress.set_loss(since_report_.mean_loss());
  progress.set_examples(examples_);
  progress.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  *progress.mutable_counters() = numbers_.Counters();
  if (numbers_.scale() != nullptr) progress.set_loss_scale(numbers_.loss_scale());
  progress.set_planned_steps(parts_.sampler.EpochBegin(options_.epochs).value);
  progress.set_waiting(parts_.client.waiting());
  WorkerProgress news;
  news.set_planned_steps(progress.planned_steps());
  news.set_examples(progress.examples());
  news.set_seconds(progress.seconds());
  if (progress.has_loss()) news.set_loss(progress.loss());
  parts_.client.members().ReportProgress(std::move(news));
  parts_.events.Write(std::move(event));
  since_report_ = {};
}

void TrainingReport::FinishEpoch(uint64_t epoch) {
  WorkerEvent event;
  WorkerEvent::Epoch& finished = *event.mutable_epoch();
  finished.set_epoch(static_cast<uint32_t>(epoch));
  if (epoch_.examples > 0) finished.set_train_loss(epoch_.mean_loss());
  if (const auto& test = evaluator_.test()) {
    if (const auto accuracy = test->accuracy()) finished.set_test_accuracy(*accuracy);
    finished.set_test_loss(test->mean_loss());
  }
  finished.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  *finished.mutable_counters() = numbers_.Counters();
  finished.set_diverged(numbers_.DivergenceText());
  parts_.events.Write(std::move(event));
  last_epoch_ = epoch_;
  epoch_ = {};
}

void TrainingReport::Done(TrainingEnding ending, std::optional<double> lost_residual) {
  WorkerEvent event;
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(steps_);
  done.set_examples(examples_);
  done.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  done.set_median_step_seconds(Median(step_seconds_));
  const BatchResult& last = epoch_.examples > 0 ? epoch_ : last_epoch_;
  if (last.examples > 0) done.set_final_train_loss(last.mean_loss());
  done.set_evaluator(evaluator_.test().has_value());
  if (const auto& test = evaluator_.test()) {
    if (const auto accuracy = test->accuracy()) done.set_final_test_accuracy(*accuracy);
    done.set_final_test_loss(test->mean_loss());
  }
  *done.mutable_counters() = numbers_.Counters();
  if (numbers_.scale() != nullptr) done.set_loss_scale(numbers_.loss_scale());
  if (lost_residual) done.set_lost_residual_l1(*lost_residual);
  if (ending == TrainingEnding::kDiverged) {
    done.set_diverged(numbers_.DivergenceText());
    done.set_left_early(options_.stop_on_divergence && numbers_.loss_is_lost());
  }
  for (const GroupCodec& choice : parts_.client.choices()) {
    WorkerEvent::PushCodec& codec = *done.add_push_codecs();
    codec.set_group(choice.group);
    codec.set_codec(choice.codec);
    codec.set_reason(choice.reason);
  }
  const bool finished = ending == TrainingEnding::kFinished || ending == TrainingEnding::kDiverged;
  if (const ModelOutput* const output = evaluator_.final_output(); finished && output != nullptr) {
    done.set_output(output->path());
    if (output->keeps_best()) done.set_kept_epoch(output->written()->epoch);
  }
  parts_.events.Write(std::move(event));
}

}  // namespace thinwire
