#include "worker/trainer/trainer.h"

#include <glog/logging.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/time/trace.h"
#include "proto/deal_check.h"
#include "worker/batches/batch_buffer.h"

namespace thinwire {
namespace {

// The workers of a job that is stopped are asked to stop within this time, apart from their steps.
constexpr absl::Duration kStopTime = absl::Seconds(4);
// The number of batches from which a worker recomputes the running moments of batch normalization.
// Each batch multiplies the old value of a moment by 0.9, so after 50 batches the initial value
// contributes only 0.5 %.
constexpr uint64_t kBufferBatches = 50;

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts)
    : options_(options),
      parts_(parts),
      stopwatch_(parts.clock),
      numbers_(options_, parts_),
      evaluator_(options_, parts_, numbers_, stopwatch_),
      report_(options_, parts_, numbers_, evaluator_, stopwatch_),
      runner_(options_, parts_, numbers_, report_),
      saved_(options_, parts_, numbers_, runner_.local_steps(), runner_.streaming()) {}

absl::StatusOr<Trainer::Ending> Trainer::Run() {
  absl::StatusOr<Ending> ending = Ending::kFinished;
  {
    const WaitReporter reporter(parts_.events, [this] { return parts_.client.waiting(); });
    ending = Loop();
  }
  if (absl::IsCancelled(ending.status()) && stop_requested()) {
    // Client::Stop has ended a wait.
    ending = Ending::kStopped;
  }
  if (joined_ && ending.ok() && (*ending == Ending::kStopped || *ending == Ending::kRetired)) {
    if (const absl::Status settled = Settle(); !settled.ok()) {
      LOG(WARNING) << "the last steps are not complete: " << settled.message();
    }
    if (*ending == Ending::kRetired || !StopTogether()) Drain();
    const absl::Status saved = saved_.Save(next_);
    if (!saved.ok()) LOG(ERROR) << "state not saved: " << saved.message();
  }
  stopwatch_.Stop();
  // Leaves also after an error. Otherwise, the other workers would wait until the lease expires.
  const bool finished = joined_ && ending.ok() && is_over(next_);
  const bool diverged = ending.ok() && *ending == Ending::kDiverged;
  const absl::Status left =
      parts_.client.Leave({.finished = finished,
                           .failed = !ending.ok(),
                           .diverged = diverged ? numbers_.DivergenceText() : ""});
  if (!ending.ok()) return ending;
  if (evaluator_.writes_output() && left.ok()) {
    const absl::StatusOr<bool> written = evaluator_.WriteOutput();
    const bool stopped = absl::IsCancelled(written.status()) && stop_requested();
    if (!stopped) RETURN_IF_ERROR(written.status());
    if (stopped) ending = Ending::kStopped;
    if (!stopped && !*written) ending = Ending::kNotWritten;
  }
  if (diverged) LOG(INFO) << "diverged: " << numbers_.DivergenceText();
  // The result is reported even if leaving the job fails.
  report_.Done(*ending, lost_residual_l1_);
  if (*ending != Ending::kStopped) RETURN_IF_ERROR(left);
  if (!left.ok()) LOG(WARNING) << left.message();
  return ending;
}

absl::StatusOr<Trainer::Ending> Trainer::Loop() {
  absl::StatusOr<Ending> ending = JoinAndTrain();
  while (!ending.ok() && parts_.client.rolled_back()) {
    // Returns of adaptive precision are no failures.
    LOG_AT_LEVEL(evaluator_.has_trials() ? google::GLOG_INFO : google::GLOG_WARNING)
        << ending.status().message();
    ending = JoinAndTrain();
  }
  return ending;
}

absl::StatusOr<Trainer::Ending> Trainer::JoinAndTrain() {
  ASSIGN_OR_RETURN(next_, Join());
  const auto lost = [this] {
    return options_.stop_on_divergence && numbers_.loss_is_lost() && !evaluator_.IsInTrial(next_);
  };
  RETURN_IF_ERROR(evaluator_.TestTrial(next_));
  RETURN_IF_ERROR(AwaitDeals(next_));
  while (!is_over(next_) && !lost() && !stop_requested() && !parts_.client.members().retired()) {
    const Step step = next_;
    ASSIGN_OR_RETURN(next_, TrainStep(step));
    report_.Progress(step);
    RETURN_IF_ERROR(evaluator_.TestTrial(next_));
    RETURN_IF_ERROR(AwaitDeals(next_));
    const uint64_t epoch = parts_.sampler.epoch(step);
    if (parts_.sampler.epoch(next_) > epoch) {
      RETURN_IF_ERROR(Settle());
      RETURN_IF_ERROR(FinishEpoch(epoch));
    }
  }
  RETURN_IF_ERROR(Settle());
  if (lost()) return Ending::kDiverged;
  if (!is_over(next_)) {
    if (stop_requested()) return Ending::kStopped;
    LOG(INFO) << "an operator removed this worker: worker " << options_.worker
              << " leaves before step " << next_;
    return Ending::kRetired;
  }
  // A worker that joined after the job's last step has finished no epoch, so it has not evaluated
  // its replica yet.
  ASSIGN_OR_RETURN(const bool evaluates, evaluator_.IsAppointed());
  if (!evaluator_.test() && evaluates) {
    RETURN_IF_ERROR(AwaitParameters(next_));
    RETURN_IF_ERROR(evaluator_.Test(next_));
  }
  if (options_.output && evaluates) RETURN_IF_ERROR(evaluator_.AwaitOthers());
  return numbers_.has_symptom() ? Ending::kDiverged : Ending::kFinished;
}

absl::StatusOr<Step> Trainer::Join() {
  const bool follows_rollback = parts_.client.rolled_back();
  joined_ = false;
  std::vector<std::span<const float>> initial;
  const auto place =
      parts_.client.device() == nullptr ? Model::Place::kHost : Model::Place::kDevice;
  for (uint32_t i = 0; i < parts_.model.tensors().size(); ++i) {
    initial.push_back(parts_.model.initial(i));
    if (!follows_rollback) parts_.model.Bind(i, parts_.client.replica(i), place);
  }
  ASSIGN_OR_RETURN(const Step step, parts_.client.Join(initial));
  if (follows_rollback) parts_.sampler.ForgetDeals();
  // The steps of a discarded trial do not count.
  if (follows_rollback && evaluator_.has_trials()) numbers_.ForgetSteps();
  // The lead deals the step after a trial when JoinAndTrain has tested the trial.
  RETURN_IF_ERROR(AwaitDeals(evaluator_.FollowsTrial(step) ? Step{step.value - 1} : step));
  if (!follows_rollback) report_.Joined(step);
  LOG(INFO) << "joined at step " << step << " of " << parts_.sampler.EpochBegin(options_.epochs)
            << ", device " << options_.device;
  if (const std::string& text = parts_.client.state().restored(); !text.empty()) LOG(INFO) << text;
  ASSIGN_OR_RETURN(const bool has_buffers, saved_.Restore(step, follows_rollback));
  has_buffers_ = has_buffers_ || has_buffers;
  // Saves the state once before training. If a file cannot be written, the worker fails now, when
  // there are no residuals to lose.
  if (!parts_.client.state().is_saved()) RETURN_IF_ERROR(saved_.Save(step));
  // After the last step, the evaluating worker may wait until this worker leaves, and this worker's
  // parameters would wait for the evaluating worker.
  if (!is_over(step)) RETURN_IF_ERROR(AwaitParameters(step));
  joined_ = true;
  stopwatch_.Stop();
  stopwatch_.Start();
  return step;
}

absl::Status Trainer::AwaitDeals(Step step) {
  Sampler& sampler = parts_.sampler;
  ASSIGN_OR_RETURN(const std::vector<Deal> deals,
                   parts_.client.deals().Wait(step, sampler.deal_count()));
  for (const Deal& deal : deals) {
    sampler.Add(deal);
    LOG(INFO) << DealText(deal) << "; the run ends before step "
              << sampler.EpochBegin(options_.epochs);
  }
  const uint64_t epoch = sampler.epoch(step);
  // Deals up to STEP are known, so this beginning is final.
  if (const Step begin = sampler.EpochBegin(epoch); begin <= step) {
    parts_.client.deals().BeginEpoch(epoch, begin);
  }
  return absl::OkStatus();
}

absl::Status Trainer::AwaitParameters(Step step) {
  RETURN_IF_ERROR(parts_.client.WaitAll());
  if (!has_buffers_ && step > Step{0} && parts_.model.has_buffers()) {
    RETURN_IF_ERROR(RecomputeBuffers(step));
  }
  has_buffers_ = true;
  return absl::OkStatus();
}

absl::Status Trainer::RecomputeBuffers(Step step) {
  parts_.model.ResetBuffers();
  BatchBuffer batches(parts_.train);
  uint64_t batch_count = 0;
  for (uint64_t i = 0; i < kBufferBatches; ++i) {
    const auto examples = parts_.sampler.MembersBatch(step + i);
    if (examples.empty()) continue;
    for (const std::span<const uint32_t> part : Parts(examples, options_.batch_size)) {
      if (batch_count++ == kBufferBatches) return absl::OkStatus();
      Batch batch = batches.Gather(part);
      batch.random_seed = parts_.sampler.RandomSeed(step + i);
      RETURN_IF_ERROR(parts_.model.UpdateBuffers(batch));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> Trainer::TrainStep(Step step, bool whole) {
  const TraceSpan span(parts_.tracer, kTrainingLane, "step", {.step = step});
  ASSIGN_OR_RETURN(const Step settled, saved_.SaveIfDue(step));
  if (settled != step) return settled;
  const absl::Duration before = stopwatch_.elapsed();
  ASSIGN_OR_RETURN(const Step next, runner_.Run(step, whole));
  report_.AddStep(stopwatch_.elapsed() - before);
  evaluator_.ForgetTest();
  return next;
}

absl::Status Trainer::Settle() {
  ASSIGN_OR_RETURN(const Step next, parts_.client.Settle());
  if (next == next_) return absl::OkStatus();
  next_ = next;
  return AwaitDeals(next_);
}

bool Trainer::StopTogether() {
  if (!options_.keeps_state) return false;
  const absl::Duration longest = kStopTime + report_.median_step();
  const absl::StatusOr<std::optional<Step>> stop =
      parts_.client.draining().AwaitCommonStop(longest);
  if (!stop.ok()) {
    LOG(WARNING) << "does not know whether the other workers stop: " << stop.status().message();
    return false;
  }
  if (!stop->has_value()) return false;
  LOG(INFO) << "all workers stop before step " << **stop;
  while (next_ < **stop && !is_over(next_) && AwaitDeals(next_).ok()) {
    const absl::StatusOr<Step> next = TrainStep(next_);
    if (!next.ok()) {
      LOG(WARNING) << "the last step is not complete: " << next.status().message();
      break;
    }
    next_ = *next;
  }
  if (const absl::Status settled = Settle(); !settled.ok()) {
    LOG(WARNING) << "the last steps are not complete: " << settled.message();
  }
  return true;
}

void Trainer::Drain() {
  const auto unpushed_norm = [this] {
    return runner_.streaming() != nullptr ? runner_.streaming()->UnpushedNorm() : 0;
  };
  absl::StatusOr<bool> drains = true;
  for (uint64_t late = 0; !is_over(next_) && AwaitDeals(next_).ok();) {
    late = parts_.client.counters().late_pushes();
    drains = parts_.client.draining().Start(report_.median_step(), unpushed_norm() > 0);
    if (!drains.ok() || !*drains) break;
    const absl::StatusOr<Step> next = TrainStep(next_, /*whole=*/true);
    if (next.ok()) next_ = *next;
    const absl::Status complete = next.ok() ? Settle() : next.status();
    if (!complete.ok()) {
      LOG(WARNING) << "the last step is not complete: " << complete.message();
      break;
    }
    if (parts_.client.counters().late_pushes() == late) break;
  }
  const absl::StatusOr<double> norm = parts_.client.draining().ResidualNorm();
  if (!norm.ok()) {
    LOG(WARNING) << "leaves with an unknown residual: " << norm.status().message();
    return;
  }
  lost_residual_l1_ = *norm + unpushed_norm();
  if (*lost_residual_l1_ > 0) {
    LOG(WARNING) << "leaves with a residual of L1 norm " << *lost_residual_l1_
                 << " that no server has";
  }
}

absl::Status Trainer::FinishEpoch(uint64_t epoch) {
  numbers_.FinishEpoch(epoch);
  ASSIGN_OR_RETURN(const bool evaluates, evaluator_.IsAppointed());
  if (evaluates) RETURN_IF_ERROR(evaluator_.Test(next_));
  evaluator_.KeepBest(epoch);
  report_.FinishEpoch(epoch);
  return absl::OkStatus();
}

}  // namespace thinwire
