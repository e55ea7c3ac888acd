#include "worker/trainer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/encode/state_folder.h"
#include "common/median.h"
#include "common/status_macros.h"
#include "proto/precision.pb.h"

namespace thinwire {
namespace {

constexpr char kLane[] = "training";  // of the trace
constexpr absl::Duration kReportInterval = absl::Milliseconds(200);
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
      batches_(parts.train),
      divergence_(GuessingLoss(parts.train.labels)) {
  uint64_t largest = 0;
  for (const TensorShape& tensor : parts_.model.tensors()) {
    largest = std::max(largest, tensor.value_count());
  }
  zeros_.resize(largest);
  if (options_.loss_scaling) loss_scale_.emplace(*options_.loss_scaling);
  if (options_.local.enabled()) {
    local_steps_.emplace(options_.local, parts_.model.tensors());
    for (const TensorShape& tensor : parts_.model.tensors()) {
      local_gradient_.emplace_back(tensor.value_count());
    }
  }
  if (options_.trial_steps > 0) trial_tests_.emplace(options_.trial_steps);
  if (options_.output) output_.emplace(*options_.output, parts.client, parts.model, parts.test);
}

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
    if (*ending == Ending::kRetired || !StopTogether()) Drain();
    SaveOrLog();
  }
  stopwatch_.Stop();
  // Leaves also after an error. Otherwise, the other workers would wait until the lease expires.
  const bool finished = joined_ && ending.ok() && is_over(next_);
  const absl::Status left = parts_.client.Leave(finished);
  if (!ending.ok()) return ending;
  if (writes_output_ && left.ok()) {
    const absl::StatusOr<bool> written = WriteOutput();
    const bool stopped = absl::IsCancelled(written.status()) && stop_requested();
    if (!stopped) RETURN_IF_ERROR(written.status());
    if (stopped) ending = Ending::kStopped;
    if (!stopped && !*written) ending = Ending::kNotWritten;
  }
  if (*ending == Ending::kDiverged) LOG(INFO) << "diverged: " << DivergenceText();
  // The result is reported even if leaving the job fails.
  ReportDone(*ending);
  if (*ending != Ending::kStopped) RETURN_IF_ERROR(left);
  if (!left.ok()) LOG(WARNING) << left.message();
  return ending;
}

absl::StatusOr<Trainer::Ending> Trainer::Loop() {
  absl::StatusOr<Ending> ending = JoinAndTrain();
  while (!ending.ok() && parts_.client.rolled_back()) {
    // Returns of adaptive precision are no failures.
    LOG_AT_LEVEL(trial_tests_.has_value() ? google::GLOG_INFO : google::GLOG_WARNING)
        << ending.status().message();
    ending = JoinAndTrain();
  }
  return ending;
}

absl::StatusOr<Trainer::Ending> Trainer::JoinAndTrain() {
  ASSIGN_OR_RETURN(next_, Join());
  const auto lost = [this] {
    return options_.stop_on_divergence && divergence_.loss_is_lost() && !IsInTrial(next_);
  };
  RETURN_IF_ERROR(TestTrial(next_));
  while (!is_over(next_) && !lost() && !stop_requested() && !parts_.client.members().retired()) {
    const Step step = next_;
    ASSIGN_OR_RETURN(next_, TrainStep(step));
    ReportStep(step);
    RETURN_IF_ERROR(TestTrial(next_));
    RETURN_IF_ERROR(AwaitDeals(next_));
    const uint64_t epoch = parts_.sampler.epoch(step);
    if (parts_.sampler.epoch(next_) > epoch) RETURN_IF_ERROR(FinishEpoch(epoch));
  }
  if (lost()) return Ending::kDiverged;
  if (!is_over(next_)) {
    if (stop_requested()) return Ending::kStopped;
    LOG(INFO) << "an operator removed this worker: worker " << options_.worker
              << " leaves before step " << next_;
    return Ending::kRetired;
  }
  // A worker that joined after the job's last step has finished no epoch, so it has not evaluated
  // its replica yet.
  ASSIGN_OR_RETURN(const bool evaluates, Evaluates());
  if (!test_ && evaluates) {
    RETURN_IF_ERROR(AwaitParameters(next_));
    RETURN_IF_ERROR(Test());
  }
  if (output_ && evaluates) RETURN_IF_ERROR(AwaitOthers());
  return divergence_.symptom().empty() ? Ending::kFinished : Ending::kDiverged;
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
  if (follows_rollback && trial_tests_.has_value()) {
    divergence_ = DivergenceWatch(GuessingLoss(parts_.train.labels));
  }
  RETURN_IF_ERROR(AwaitDeals(step));
  const Step end = parts_.sampler.EpochBegin(options_.epochs);
  if (!follows_rollback) {
    WorkerEvent event;
    event.mutable_joined()->set_step(step.value);
    event.mutable_joined()->set_device(options_.device);
    event.mutable_joined()->set_planned_steps(end.value);
    parts_.events.Write(std::move(event));
  }
  LOG(INFO) << "joined at step " << step << " of " << end << ", device " << options_.device;
  if (const std::string& text = parts_.client.state().restored(); !text.empty()) LOG(INFO) << text;
  RETURN_IF_ERROR(RestoreLossScale(step, follows_rollback));
  RETURN_IF_ERROR(RestoreTrainerState(step));
  // Saves the state once before training. If a file cannot be written, the worker fails now, when
  // there are no residuals to lose.
  RETURN_IF_ERROR(parts_.client.state().Save(StateWriter(step)));
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
    LOG(INFO) << "from step " << deal.step() << " on, the examples are dealt among "
              << deal.members_size() << " workers"
              << (deal.accumulate() > 0
                      ? absl::StrCat(", which accumulate ", deal.accumulate(), " batches")
                      : "")
              << "; the run ends before step " << sampler.EpochBegin(options_.epochs);
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
  uint64_t batch_count = 0;
  for (uint64_t i = 0; i < kBufferBatches; ++i) {
    const auto examples = parts_.sampler.MembersBatch(step + i);
    if (examples.empty()) continue;
    for (const std::span<const uint32_t> part : Parts(examples, options_.batch_size)) {
      if (batch_count++ == kBufferBatches) return absl::OkStatus();
      Batch batch = batches_.Gather(part);
      batch.random_seed = parts_.sampler.RandomSeed(step + i);
      RETURN_IF_ERROR(parts_.model.UpdateBuffers(batch));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> Trainer::TrainStep(Step step) {
  const TraceSpan span(parts_.tracer, kLane, "step", {.step = step});
  SaveIfDue();
  const absl::Duration before = stopwatch_.elapsed();
  const auto examples = parts_.sampler.Batch(step);
  double loss = 0;
  if (examples.empty()) {
    RETURN_IF_ERROR(PushZeros(step));
  } else if (local_steps_) {
    ASSIGN_OR_RETURN(loss, PushDifference(step, examples));
  } else {
    ASSIGN_OR_RETURN(loss, PushGradients(step, examples));
  }
  {
    const TraceSpan wait(parts_.tracer, kLane, "wait for encoding", {.step = step});
    RETURN_IF_ERROR(parts_.client.EndStep());
  }
  if (!examples.empty()) JudgeStep(step, loss);
  ASSIGN_OR_RETURN(const Step next, NextStep(step));
  ++steps_;
  test_.reset();
  step_seconds_.push_back(static_cast<float>(absl::ToDoubleSeconds(stopwatch_.elapsed() - before)));
  return next;
}

absl::StatusOr<Step> Trainer::NextStep(Step step) {
  const TraceSpan span(parts_.tracer, kLane, "wait for verdicts", {.step = step});
  return parts_.client.NextStep();
}

bool Trainer::StopTogether() {
  if (!options_.keeps_state) return false;
  const absl::Duration longest = kStopTime + absl::Seconds(Median(step_seconds_));
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
  return true;
}

void Trainer::Drain() {
  absl::StatusOr<bool> drains = true;
  for (uint64_t late = 0; !is_over(next_) && AwaitDeals(next_).ok();) {
    late = parts_.client.counters().late_pushes();
    drains = parts_.client.draining().Start(absl::Seconds(Median(step_seconds_)));
    if (!drains.ok() || !*drains) break;
    const absl::StatusOr<Step> next = TrainStep(next_);
    if (!next.ok()) {
      LOG(WARNING) << "the last step is not complete: " << next.status().message();
      break;
    }
    next_ = *next;
    if (parts_.client.counters().late_pushes() == late) break;
  }
  const absl::StatusOr<double> norm = parts_.client.draining().ResidualNorm();
  if (!norm.ok()) {
    LOG(WARNING) << "leaves with an unknown residual: " << norm.status().message();
    return;
  }
  lost_residual_l1_ = *norm;
  if (*norm > 0) {
    LOG(WARNING) << "leaves with a residual of L1 norm " << *norm << " that no server has";
  }
}

absl::StatusOr<BatchResult> Trainer::TrainOn(Step step, uint32_t local_step,
                                             std::span<const uint32_t> examples,
                                             const Model::Gate& gate, const Model::Sink& sink) {
  Batch batch = batches_.Gather(examples);
  batch.random_seed = parts_.sampler.RandomSeed(step, local_step);
  batch.part_size = options_.batch_size;
  const TraceSpan span(parts_.tracer, kLane, "forward and backward", {.step = step});
  ASSIGN_OR_RETURN(const BatchResult result, parts_.model.Train(batch, loss_scale(), gate, sink));
  examples_ += result.examples;
  since_report_ += result;
  epoch_train_ += result;
  if (!std::isfinite(result.loss_sum) && !divergence_.loss_is_lost()) {
    batch_was_finite_ = std::ranges::all_of(batch.x, [](float x) { return std::isfinite(x); });
  }
  return result;
}

void Trainer::Delay() {
  if (options_.delay > absl::ZeroDuration()) parts_.stop(options_.delay);
}

absl::StatusOr<double> Trainer::PushGradients(Step step, std::span<const uint32_t> examples) {
  parts_.client.BeginStep(step, static_cast<uint32_t>(examples.size()), loss_scale());
  bool delayed = false;
  ASSIGN_OR_RETURN(const BatchResult result, TrainOn(
                                                 step, /*local_step=*/0, examples,
                                                 [&](uint32_t i) { return WaitTensor(step, i); },
                                                 [&](uint32_t i, TensorGradient gradient) {
                                                   if (!delayed) Delay();
                                                   delayed = true;
                                                   parts_.client.Ready(i, std::move(gradient));
                                                 }));
  return result.mean_loss();
}

absl::StatusOr<double> Trainer::PushDifference(Step step, std::span<const uint32_t> examples) {
  const auto tensor_count = static_cast<uint32_t>(local_gradient_.size());
  {
    const TraceSpan wait(parts_.tracer, kLane, "wait for parameters", {.step = step});
    RETURN_IF_ERROR(parts_.client.WaitAll());
  }
  std::vector<std::span<float>> parameters;
  for (uint32_t i = 0; i < tensor_count; ++i) parameters.push_back(parts_.client.replica(i));
  const std::vector<std::span<float>> gradient(local_gradient_.begin(), local_gradient_.end());
  const Model::Gate open = [](uint32_t) { return absl::OkStatus(); };
  const Model::Sink copy = [&](uint32_t i, const TensorGradient& values) {
    std::ranges::copy(values.values, gradient[i].begin());
  };
  BatchResult trained;
  uint32_t local_step = 0;
  size_t pushed_examples = 0;
  local_steps_->Begin(parameters);
  for (const auto part : Parts(examples, uint64_t{options_.batch_size} * options_.accumulate)) {
    ASSIGN_OR_RETURN(const BatchResult result, TrainOn(step, local_step++, part, open, copy));
    trained += result;
    const bool finite = local_steps_->Apply(parameters, gradient, loss_scale());
    if (finite) pushed_examples += part.size();
    if (!finite) ++skipped_local_steps_;
    UpdateLossScale(step, finite ? "" : "the gradient of a local step");
  }
  local_steps_->Finish(parameters, gradient);
  Delay();
  parts_.client.BeginStep(step, static_cast<uint32_t>(pushed_examples));
  for (uint32_t i = tensor_count; i-- > 0;) parts_.client.Ready(i, gradient[i]);
  return trained.mean_loss();
}

absl::Status Trainer::PushZeros(Step step) {
  parts_.client.BeginStep(step, 0, loss_scale());
  RETURN_IF_ERROR(parts_.client.WaitAll());
  Delay();
  for (auto i = static_cast<uint32_t>(parts_.model.tensors().size()); i-- > 0;) {
    const uint64_t count = parts_.model.tensors()[i].value_count();
    parts_.client.Ready(i, std::span(zeros_).first(count));
  }
  return absl::OkStatus();
}

absl::Status Trainer::FinishEpoch(uint64_t epoch) {
  divergence_.FinishEpoch(epoch);
  ASSIGN_OR_RETURN(const bool evaluates, Evaluates());
  if (evaluates) RETURN_IF_ERROR(Test());
  KeepBest(epoch);
  WorkerEvent event;
  WorkerEvent::Epoch& finished = *event.mutable_epoch();
  finished.set_epoch(static_cast<uint32_t>(epoch));
  if (epoch_train_.examples > 0) finished.set_train_loss(epoch_train_.mean_loss());
  if (test_) {
    finished.set_test_accuracy(test_->accuracy());
    finished.set_test_loss(test_->mean_loss());
  }
  finished.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  *finished.mutable_counters() = Counters();
  finished.set_diverged(DivergenceText());
  parts_.events.Write(std::move(event));
  last_train_ = epoch_train_;
  epoch_train_ = {};
  return absl::OkStatus();
}

absl::Status Trainer::WaitTensor(Step step, uint32_t tensor) {
  const TraceSpan span(parts_.tracer, kLane, "wait for parameters", {.step = step});
  return parts_.client.WaitTensor(tensor);
}

absl::Status Trainer::Test() {
  const TraceSpan span(parts_.tracer, kLane, "evaluation");
  // Waits for the parameters of the next step, which include the updates of the last step.
  RETURN_IF_ERROR(parts_.client.WaitAll());
  stopwatch_.Stop();
  const absl::StatusOr<BatchResult> result = TestParameters();
  stopwatch_.Start();
  RETURN_IF_ERROR(result.status());
  test_ = *result;
  return absl::OkStatus();
}

absl::StatusOr<BatchResult> Trainer::TestParameters() {
  if (output_ && output_->keeps_best()) return output_->Test();
  if (!options_.averages) return Evaluate(parts_.model, parts_.test);
  ModelParameters averages;
  return TestServerParameters(parts_.client, parts_.model, parts_.test, averages);
}

bool Trainer::IsInTrial(Step step) const {
  const std::optional<Step> begin = parts_.client.trials().first_step();
  if (!begin.has_value()) return false;
  const Step trial_end = *begin + trial_tests_->trial_steps();
  // The lead ends the trial at once if it is longer than the run.
  return step < trial_end && trial_end < parts_.sampler.EpochBegin(options_.epochs);
}

absl::Status Trainer::TestTrial(Step step) {
  const std::optional<Step> begin = parts_.client.trials().first_step();
  if (!begin.has_value() || step < *begin) return absl::OkStatus();
  const uint64_t done = step - *begin;
  const Step trial_end = *begin + trial_tests_->trial_steps();
  const Step run_end = parts_.sampler.EpochBegin(options_.epochs);
  // The first test of a trial that is longer than the run tells the lead to end the trial.
  if (!trial_tests_->IsDue(done) || (done > 0 && trial_end >= run_end)) return absl::OkStatus();
  RETURN_IF_ERROR(parts_.client.WaitAll());
  trial_tests_->Arrive(*begin, step, stopwatch_.elapsed());
  std::optional<double> error;
  if (step == trial_end) error = parts_.client.trials().StopErrorMeasurement();
  if (trial_tests_->BeginsMeasuredParts(done)) parts_.client.trials().StartErrorMeasurement();
  // The evaluator may be lost while the other workers wait for the decision.
  ASSIGN_OR_RETURN(bool evaluates, Evaluates());
  while (!evaluates && step == trial_end && !parts_.client.deals().IsDealt(step)) {
    RETURN_IF_ERROR(parts_.client.members().Refresh());
    ASSIGN_OR_RETURN(evaluates, Evaluates());
  }
  if (!evaluates) return absl::OkStatus();
  RETURN_IF_ERROR(Test());
  PrecisionTest test;
  test.set_step(step.value);
  test.set_accuracy(test_->accuracy());
  if (const std::optional<double> seconds = trial_tests_->seconds_per_step()) {
    test.set_seconds_per_step(*seconds);
  }
  test.set_end(run_end.value);
  if (error.has_value()) test.set_encoding_error(*error);
  parts_.client.trials().Report(test);
  return absl::OkStatus();
}

void Trainer::KeepBest(uint64_t epoch) {
  if (!output_ || !output_->keeps_best() || !test_ || IsUseless(*test_)) return;
  const absl::Status written = output_->Write(*test_, parts_.sampler.EpochBegin(epoch + 1), epoch);
  if (!written.ok()) LOG(ERROR) << "model not written: " << written.message();
}

bool Trainer::IsUseless(const BatchResult& test) const {
  return !divergence_.symptom().empty() && !std::isfinite(test.loss_sum);
}

absl::Status Trainer::AwaitOthers() {
  stopwatch_.Stop();
  RETURN_IF_ERROR(parts_.client.members().WaitUntilAlone());
  writes_output_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::WriteOutput() {
  ASSIGN_OR_RETURN(const BatchResult result, output_->Test());
  if (IsUseless(result)) {
    LOG(ERROR) << "model not written: the test loss of the final parameters is not finite";
    test_ = result;
    return true;
  }
  const auto write = [&] {
    return output_->Write(result, parts_.sampler.EpochBegin(options_.epochs), options_.epochs - 1);
  };
  const auto wait_for = [this](const std::string& text) {
    WorkerEvent event;
    event.mutable_waiting()->set_text(text);
    parts_.events.Write(std::move(event));
  };
  absl::Status written = write();
  if (!written.ok() && !absl::IsInvalidArgument(written)) {
    LOG(ERROR) << "model not written: " << written.message() << "; tries again every "
               << options_.write_again << " until it is stopped";
    wait_for(absl::StrCat("waits until the model can be written: ", written.message()));
    do {
      parts_.client.Pause(options_.write_again);
      written = write();
    } while (!written.ok() && !stop_requested());
    if (!written.ok()) return false;
    wait_for("");
  }
  RETURN_IF_ERROR(written);
  test_ = output_->written()->test;
  return true;
}

absl::StatusOr<bool> Trainer::Evaluates() {
  ASSIGN_OR_RETURN(const WorkerId evaluator, parts_.client.members().Evaluator());
  return evaluator == options_.worker;
}

void Trainer::JudgeStep(Step step, double loss) {
  // EndStep() has encoded every shard of the step, so the client has counted all shards of the step
  // whose gradient is not finite.
  const uint64_t count = Counters().nonfinite_gradients();
  const uint64_t added = count - nonfinite_gradients_;
  nonfinite_gradients_ = count;
  divergence_.AddStep(step, loss, added > 0 && loss_scale() <= 1);
  if (local_steps_) return;  // every local step has updated the loss scale
  UpdateLossScale(step, added > 0 ? absl::StrCat("the gradient of ", added, " shards") : "");
}

void Trainer::UpdateLossScale(Step step, const std::string& what) {
  if (!loss_scale_) return;
  if (what.empty()) {
    loss_scale_->Good();
    return;
  }
  const float before = loss_scale_->value();
  loss_scale_->Overflowed();
  if (const auto more = overflow_lines_.Next(parts_.clock.Now())) {
    LOG(INFO) << "step " << step << ": " << what << " is not finite; loss scale " << before
              << " -> " << loss_scale_->value() << *more;
  }
}

std::string Trainer::DivergenceText() const {
  const std::string& symptom = divergence_.symptom();
  if (symptom.empty()) return "";
  if (!batch_was_finite_) {
    return absl::StrCat(symptom, ": the data has a value that is not finite in this step's batch");
  }
  if (options_.divergence_advice.empty()) return symptom;
  return absl::StrCat(symptom, "; what usually helps: ", options_.divergence_advice);
}

absl::Status Trainer::RestoreLossScale(Step step, bool after_rollback) {
  const client::StateFolder* const folder = parts_.client.state().folder();
  if (!loss_scale_ || folder == nullptr) return absl::OkStatus();
  // Join has removed the states of steps above STEP.
  ASSIGN_OR_RETURN(const std::vector<Step> steps, folder->Steps());
  if (steps.empty() || (after_rollback && steps.back() != step)) return absl::OkStatus();
  const LossScaleFile file = {LossScalePath(folder->PathOf(steps.back())), options_.job,
                              options_.worker};
  const absl::StatusOr<LossScale::State> saved = ReadLossScale(file);
  if (absl::IsNotFound(saved.status())) return absl::OkStatus();
  RETURN_IF_ERROR(saved.status());
  loss_scale_->Restore(*saved);
  LOG(INFO) << file.path << ": loss scale " << loss_scale_->value();
  return absl::OkStatus();
}

TrainerStateFile Trainer::StateFileOf(Step step) const {
  return {TrainerStatePath(parts_.client.state().folder()->PathOf(step)), options_.job,
          options_.worker, step};
}

TrainerState Trainer::CurrentState() const {
  TrainerState state;
  if (parts_.model.has_buffers()) {
    absl::StatusOr<std::vector<ModelBuffer>> buffers = parts_.model.Buffers();
    if (buffers.ok()) state.buffers = *std::move(buffers);
  }
  if (local_steps_) state.local = local_steps_->state();
  return state;
}

absl::Status Trainer::RestoreTrainerState(Step step) {
  const TrainerState present = CurrentState();
  if (present == TrainerState() || parts_.client.state().folder() == nullptr) {
    return absl::OkStatus();
  }
  TrainerStateFile file = StateFileOf(step);
  absl::StatusOr<TrainerState> saved = ReadTrainerState(file, present);
  if (absl::IsNotFound(saved.status()) && step > Step{0}) {
    file = StateFileOf(Step{step.value - 1});
    saved = ReadTrainerState(file, present);
  }
  if (absl::IsNotFound(saved.status())) {
    if (!present.local.slots.empty() && step > Step{0} && present.local.update_count == 0) {
      LOG(INFO) << "the local optimizer starts without state, because none of this step was saved";
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(saved.status());
  if (!saved->buffers.empty()) {
    parts_.model.SetBuffers(saved->buffers);
    has_buffers_ = true;
  }
  if (local_steps_) local_steps_->Restore(std::move(saved->local));
  LOG(INFO) << file.path << ": restored";
  return absl::OkStatus();
}

client::StateSaver::WriteBeside Trainer::StateWriter(Step step) const {
  if (parts_.client.state().folder() == nullptr) return nullptr;
  std::optional<LossScale::State> scale;
  if (loss_scale_) scale = loss_scale_->state();
  return [file = StateFileOf(step), scale,
          state = CurrentState()](const std::string& path) -> absl::Status {
    if (scale.has_value()) {
      RETURN_IF_ERROR(WriteLossScale({LossScalePath(path), file.job, file.worker}, *scale));
    }
    return state == TrainerState() ? absl::OkStatus() : WriteTrainerState(file, state);
  };
}

void Trainer::SaveOrLog() {
  const absl::Status saved = parts_.client.state().Save(StateWriter(next_));
  if (!saved.ok()) LOG(ERROR) << "state not saved: " << saved.message();
}

void Trainer::SaveIfDue() {
  if (!parts_.client.state().IsDue()) return;
  // After an error, the next wait of the step returns it.
  const absl::Status started = parts_.client.state().StartSave(StateWriter(next_));
  if (started.ok()) return;
  if (const auto more = failure_lines_.Next(parts_.clock.Now())) {
    LOG(ERROR) << "state not saved: " << started.message() << *more;
  }
}

void Trainer::ReportStep(Step step) {
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
  *progress.mutable_counters() = Counters();
  if (loss_scale_) progress.set_loss_scale(loss_scale_->value());
  progress.set_planned_steps(parts_.sampler.EpochBegin(options_.epochs).value);
  progress.set_waiting(parts_.client.waiting());
  parts_.events.Write(std::move(event));
  since_report_ = {};
}

void Trainer::ReportDone(Ending ending) {
  WorkerEvent event;
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(steps_);
  done.set_examples(examples_);
  done.set_seconds(absl::ToDoubleSeconds(stopwatch_.elapsed()));
  done.set_median_step_seconds(Median(step_seconds_));
  const BatchResult& last = epoch_train_.examples > 0 ? epoch_train_ : last_train_;
  if (last.examples > 0) done.set_final_train_loss(last.mean_loss());
  done.set_evaluator(test_.has_value());
  if (test_) {
    done.set_final_test_accuracy(test_->accuracy());
    done.set_final_test_loss(test_->mean_loss());
  }
  *done.mutable_counters() = Counters();
  if (loss_scale_) done.set_loss_scale(loss_scale_->value());
  if (lost_residual_l1_) done.set_lost_residual_l1(*lost_residual_l1_);
  if (ending == Ending::kDiverged) {
    done.set_diverged(DivergenceText());
    done.set_left_early(options_.stop_on_divergence && divergence_.loss_is_lost());
  }
  for (const GroupCodec& choice : parts_.client.choices()) {
    WorkerEvent::PushCodec& codec = *done.add_push_codecs();
    codec.set_group(choice.group);
    codec.set_codec(choice.codec);
    codec.set_reason(choice.reason);
  }
  const bool finished = ending == Ending::kFinished || ending == Ending::kDiverged;
  if (finished && writes_output_ && output_->written()) {
    done.set_output(output_->path());
    if (output_->keeps_best()) done.set_kept_epoch(output_->written()->epoch);
  }
  parts_.events.Write(std::move(event));
}

WorkerCounters Trainer::Counters() const {
  WorkerCounters counters = parts_.client.counters();
  if (loss_scale_) counters.set_overflowed_steps(loss_scale_->overflow_count());
  counters.set_nonfinite_gradients(counters.nonfinite_gradients() + skipped_local_steps_);
  return counters;
}

}  // namespace thinwire
