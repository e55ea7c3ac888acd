#include "worker/trainer.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "worker/evaluate.h"
#include "worker/wait_watch.h"

namespace thinwire {
namespace {

constexpr absl::Duration kBetweenLines = absl::Milliseconds(200);
// A running moment keeps 0.9 of itself per batch: after 50 nothing of the start is left.
constexpr uint64_t kBufferBatches = 50;

absl::Duration Median(std::vector<float> seconds) {
  if (seconds.empty()) return absl::ZeroDuration();
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return absl::Seconds(*middle);
}

// REQUIRES of both: an example.
double MeanLoss(const BatchResult& result) {
  return result.loss_sum / static_cast<double>(result.examples);
}
double Accuracy(const BatchResult& result) {
  return static_cast<double>(result.correct) / static_cast<double>(result.examples);
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts)
    : options_(options),
      parts_(parts),
      end_{options.epochs * parts.sampler.steps_per_epoch()},
      stopwatch_(parts.clock),
      batches_(parts.train) {
  uint64_t largest = 0;
  for (const TensorShape& tensor : parts_.model.tensors()) {
    largest = std::max(largest, tensor.value_count());
  }
  zeros_.resize(largest);
  if (options_.loss_scaling) loss_scale_.emplace(*options_.loss_scaling);
}

absl::StatusOr<Trainer::Ending> Trainer::Run() {
  absl::StatusOr<Ending> ending = Ending::kFinished;
  {
    // Waits are told while they last, and none after the end.
    WaitWatch watch([this] { return parts_.client.waiting(); },
                    [this](const std::string& text) {
                      WorkerEvent event;
                      event.mutable_waiting()->set_text(text);
                      parts_.events.Write(event);
                    });
    ending = Loop();
  }
  if (!ending.ok()) return ending;
  stopwatch_.Stop();
  // Every verdict is in: what was learned stands, also where the leave goes wrong.
  const absl::Status left = parts_.client.Leave();
  TellDone();
  if (!left.ok()) return left;
  return ending;
}

absl::StatusOr<Trainer::Ending> Trainer::Loop() {
  absl::StatusOr<Step> step = Join();
  if (!step.ok()) return step.status();
  while (*step < end_ && !parts_.stop()) {
    absl::StatusOr<Step> next = TrainStep(*step);
    if (!next.ok()) return next.status();
    TellStep(*step);
    const uint64_t epoch = parts_.sampler.epoch(*step);
    if (parts_.sampler.epoch(*next) > epoch) {
      const absl::Status status = FinishEpoch(epoch);
      if (!status.ok()) return status;
    }
    step = next;
  }
  if (*step < end_) {
    SaveOrTell();
    return Ending::kStopped;
  }
  // A worker that came back after the end has not tested yet.
  if (!test_ && evaluates()) {
    const absl::Status status = Test();
    if (!status.ok()) return status;
  }
  return Ending::kFinished;
}

absl::StatusOr<Step> Trainer::Join() {
  std::vector<std::span<const float>> initial;
  const auto place =
      parts_.client.device() == nullptr ? Model::Place::kHost : Model::Place::kDevice;
  for (uint32_t i = 0; i < parts_.model.tensors().size(); ++i) {
    initial.push_back(parts_.model.initial(i));
    parts_.model.Bind(i, parts_.client.replica(i), place);
  }
  const absl::StatusOr<Step> step = parts_.client.Join(initial);
  if (!step.ok()) return step.status();
  WorkerEvent joined;
  joined.mutable_joined()->set_step(step->value);
  joined.mutable_joined()->set_device(options_.device);
  parts_.events.Write(joined);
  LOG(INFO) << "joined at step " << *step << " of " << end_ << ", on " << options_.device;
  if (const std::string& text = parts_.client.residual_start(); !text.empty()) LOG(INFO) << text;
  absl::Status status = RestoreLossScale();
  if (!status.ok()) return status;
  // Now, so that a path that cannot be written is known before anything is owed.
  status = Save();
  if (!status.ok()) return status;
  status = parts_.client.WaitAll();
  if (!status.ok()) return status;
  if (*step > Step{0} && parts_.model.has_buffers()) {
    status = RecomputeBuffers(*step);
    if (!status.ok()) return status;
  }
  stopwatch_.Start();
  return step;
}

absl::Status Trainer::RecomputeBuffers(Step step) {
  parts_.model.ResetBuffers();
  for (uint64_t i = 0; i < kBufferBatches; ++i) {
    const auto examples = parts_.sampler.Batch(step + i);
    if (examples.empty()) continue;
    const absl::Status status = parts_.model.UpdateBuffers(batches_.Gather(examples));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> Trainer::TrainStep(Step step) {
  const absl::Duration before = stopwatch_.elapsed();
  const auto examples = parts_.sampler.Batch(step);
  parts_.client.BeginStep(step, static_cast<uint32_t>(examples.size()), loss_scale());
  absl::Status status = examples.empty() ? GiveNothing() : Compute(examples);
  if (status.ok()) status = parts_.client.EndStep();
  if (!status.ok()) return status;
  if (!examples.empty()) MoveLossScale(step);
  absl::StatusOr<Step> next = parts_.client.NextStep();
  if (!next.ok()) return next;
  ++steps_;
  test_.reset();
  step_seconds_.push_back(static_cast<float>(absl::ToDoubleSeconds(stopwatch_.elapsed() - before)));
  return next;
}

absl::Status Trainer::Compute(std::span<const uint32_t> examples) {
  bool slept = false;
  const absl::StatusOr<BatchResult> result = parts_.model.Train(
      batches_.Gather(examples), loss_scale(),
      [this](uint32_t i) { return parts_.client.WaitTensor(i); },
      [&](uint32_t i, TensorGradient gradient) {
        if (!slept) absl::SleepFor(options_.delay);
        slept = true;
        parts_.client.Ready(i, std::move(gradient));
      });
  if (!result.ok()) return result.status();
  examples_ += result->examples;
  since_line_ += *result;
  epoch_train_ += *result;
  return absl::OkStatus();
}

// A worker whose share of the epoch is used up takes its steps all the same, with weight 0, so that
// the others need not know.
absl::Status Trainer::GiveNothing() {
  const absl::Status status = parts_.client.WaitAll();
  if (!status.ok()) return status;
  absl::SleepFor(options_.delay);
  for (auto i = static_cast<uint32_t>(parts_.model.tensors().size()); i-- > 0;) {
    const uint64_t count = parts_.model.tensors()[i].value_count();
    parts_.client.Ready(i, std::span(zeros_).first(count));
  }
  return absl::OkStatus();
}

void Trainer::MoveLossScale(Step step) {
  if (!loss_scale_) return;
  // Every shard of the step is encoded: so it is known which were not finite.
  const uint64_t count = parts_.client.counters().nonfinite_gradients();
  if (count == nonfinite_gradients_) {
    loss_scale_->Good();
    return;
  }
  const float before = loss_scale_->value();
  loss_scale_->Overflowed();
  LOG(INFO) << "step " << step << ": " << count - nonfinite_gradients_
            << " shards of the gradient are not finite; loss scale " << before << " -> "
            << loss_scale_->value();
  nonfinite_gradients_ = count;
}

absl::Status Trainer::RestoreLossScale() {
  if (!loss_scale_ || !options_.loss_scale_file) return absl::OkStatus();
  const absl::StatusOr<LossScale::State> saved = ReadLossScale(*options_.loss_scale_file);
  if (absl::IsNotFound(saved.status())) return absl::OkStatus();
  if (!saved.ok()) return saved.status();
  loss_scale_->Restore(*saved);
  LOG(INFO) << options_.loss_scale_file->path << ": loss scale " << loss_scale_->value();
  return absl::OkStatus();
}

absl::Status Trainer::FinishEpoch(uint64_t epoch) {
  SaveOrTell();
  if (evaluates()) {
    const absl::Status status = Test();
    if (!status.ok()) return status;
  }
  WorkerEvent event;
  WorkerEvent::Epoch& finished = *event.mutable_epoch();
  finished.set_epoch(static_cast<uint32_t>(epoch));
  if (epoch_train_.examples > 0) finished.set_train_loss(MeanLoss(epoch_train_));
  if (test_) {
    finished.set_test_accuracy(Accuracy(*test_));
    finished.set_test_loss(MeanLoss(*test_));
  }
  finished.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  *finished.mutable_counters() = Counters();
  parts_.events.Write(event);
  last_train_ = epoch_train_;
  epoch_train_ = {};
  return absl::OkStatus();
}

absl::Status Trainer::Save() {
  const absl::Status saved = parts_.client.SaveResiduals();
  if (!saved.ok() || !loss_scale_ || !options_.loss_scale_file) return saved;
  return WriteLossScale(*options_.loss_scale_file, loss_scale_->state());
}

// No reason to end a run that learns: the older file is known to be old when it is read.
void Trainer::SaveOrTell() {
  const absl::Status saved = Save();
  if (!saved.ok()) LOG(ERROR) << "what is owed was not saved: " << saved.message();
}

absl::Status Trainer::Test() {
  // The parameters of the next step are the ones that the last step made.
  const absl::Status status = parts_.client.WaitAll();
  if (!status.ok()) return status;
  stopwatch_.Stop();
  const absl::StatusOr<BatchResult> result = Evaluate(parts_.model, parts_.test);
  stopwatch_.Start();
  if (!result.ok()) return result.status();
  test_ = *result;
  return absl::OkStatus();
}

bool Trainer::evaluates() const {
  const std::vector<WorkerId> live = parts_.client.live();
  // Before the first heartbeat's answer nobody is known to be live.
  const WorkerId lowest = live.empty() ? WorkerId{0} : *std::min_element(live.begin(), live.end());
  return options_.worker == lowest;
}

void Trainer::TellStep(Step step) {
  const absl::Time now = parts_.clock.Now();
  if (last_line_ && now - *last_line_ < kBetweenLines) return;
  last_line_ = now;
  WorkerEvent event;
  WorkerEvent::Step& progress = *event.mutable_step();
  progress.set_step(step.value);
  progress.set_epoch(static_cast<uint32_t>(parts_.sampler.epoch(step)));
  if (since_line_.examples > 0) progress.set_loss(MeanLoss(since_line_));
  progress.set_examples(examples_);
  progress.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  *progress.mutable_counters() = Counters();
  if (loss_scale_) progress.set_loss_scale(loss_scale_->value());
  progress.set_waiting(parts_.client.waiting());
  parts_.events.Write(event);
  since_line_ = {};
}

void Trainer::TellDone() {
  WorkerEvent event;
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(steps_);
  done.set_examples(examples_);
  done.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  done.set_median_step_seconds(absl::ToDoubleSeconds(Median(step_seconds_)));
  const BatchResult& last = epoch_train_.examples > 0 ? epoch_train_ : last_train_;
  if (last.examples > 0) done.set_final_train_loss(MeanLoss(last));
  done.set_evaluator(test_.has_value());
  if (test_) {
    done.set_final_test_accuracy(Accuracy(*test_));
    done.set_final_test_loss(MeanLoss(*test_));
  }
  *done.mutable_counters() = Counters();
  if (loss_scale_) done.set_loss_scale(loss_scale_->value());
  for (const GroupCodec& choice : parts_.client.choices()) {
    WorkerEvent::PushCodec& codec = *done.add_push_codecs();
    codec.set_group(choice.group);
    codec.set_codec(choice.codec);
    codec.set_reason(choice.reason);
  }
  parts_.events.Write(event);
}

WorkerCounters Trainer::Counters() const {
  WorkerCounters counters = parts_.client.counters();
  if (loss_scale_) counters.set_overflowed_steps(loss_scale_->overflow_count());
  return counters;
}

}  // namespace thinwire
