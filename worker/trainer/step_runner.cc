#include "worker/trainer/step_runner.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/time/trace.h"

namespace thinwire {

StepRunner::StepRunner(const TrainerOptions& options, const TrainerParts& parts,
                       NumericWatch& numbers, TrainingReport& report)
    : options_(options), parts_(parts), numbers_(numbers), report_(report), batches_(parts.train) {
  uint64_t largest = 0;
  for (const TensorShape& tensor : parts_.model.tensors()) {
    largest = std::max(largest, tensor.value_count());
  }
  zeros_.resize(largest);
  if (!options_.local.enabled()) return;
  local_steps_.emplace(options_.local, parts_.model.tensors());
  for (const TensorShape& tensor : parts_.model.tensors()) {
    local_gradient_.emplace_back(tensor.value_count());
  }
}

absl::StatusOr<Step> StepRunner::Run(Step step) {
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
    const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for encoding", {.step = step});
    RETURN_IF_ERROR(parts_.client.EndStep());
  }
  if (!examples.empty()) numbers_.AddStep(step, loss);
  const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for verdicts", {.step = step});
  return parts_.client.NextStep();
}

absl::StatusOr<BatchResult> StepRunner::TrainOn(Step step, uint32_t local_step,
                                                std::span<const uint32_t> examples,
                                                const Model::Gate& gate, const Model::Sink& sink) {
  Batch batch = batches_.Gather(examples);
  batch.random_seed = parts_.sampler.RandomSeed(step, local_step);
  batch.part_size = options_.batch_size;
  const TraceSpan span(parts_.tracer, kTrainingLane, "forward and backward", {.step = step});
  ASSIGN_OR_RETURN(const BatchResult result,
                   parts_.model.Train(batch, numbers_.loss_scale(), gate, sink));
  report_.AddPass(result);
  numbers_.AddPass(batch, result);
  return result;
}

void StepRunner::Delay() {
  if (options_.delay > absl::ZeroDuration()) parts_.stop(options_.delay);
}

absl::StatusOr<double> StepRunner::PushGradients(Step step, std::span<const uint32_t> examples) {
  parts_.client.BeginStep(step, static_cast<uint32_t>(examples.size()), numbers_.loss_scale());
  bool delayed = false;
  ASSIGN_OR_RETURN(const BatchResult result, TrainOn(
                                                 step, /*local_step=*/0, examples,
                                                 [&](uint32_t i) {
                                                   const TraceSpan wait(
                                                       parts_.tracer, kTrainingLane,
                                                       "wait for parameters", {.step = step});
                                                   return parts_.client.WaitTensor(i);
                                                 },
                                                 [&](uint32_t i, TensorGradient gradient) {
                                                   if (!delayed) Delay();
                                                   delayed = true;
                                                   parts_.client.Ready(i, std::move(gradient));
                                                 }));
  return result.mean_loss();
}

absl::StatusOr<double> StepRunner::PushDifference(Step step, std::span<const uint32_t> examples) {
  const auto tensor_count = static_cast<uint32_t>(local_gradient_.size());
  {
    const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for parameters", {.step = step});
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
    const bool finite = local_steps_->Apply(parameters, gradient, numbers_.loss_scale());
    if (finite) pushed_examples += part.size();
    numbers_.AddLocalStep(step, finite);
  }
  local_steps_->Finish(parameters, gradient);
  Delay();
  parts_.client.BeginStep(step, static_cast<uint32_t>(pushed_examples));
  for (uint32_t i = tensor_count; i-- > 0;) parts_.client.Ready(i, gradient[i]);
  return trained.mean_loss();
}

absl::Status StepRunner::PushZeros(Step step) {
  parts_.client.BeginStep(step, 0, numbers_.loss_scale());
  RETURN_IF_ERROR(parts_.client.WaitAll());
  Delay();
  for (auto i = static_cast<uint32_t>(parts_.model.tensors().size()); i-- > 0;) {
    const uint64_t count = parts_.model.tensors()[i].value_count();
    parts_.client.Ready(i, std::span(zeros_).first(count));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
