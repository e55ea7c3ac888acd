#include "worker/trainer/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
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
  if (options_.local.streaming()) streaming_.emplace(parts_.client.partition());
  for (const TensorShape& tensor : parts_.model.tensors()) {
    local_gradient_.emplace_back(tensor.value_count());
  }
}

absl::StatusOr<Step> StepRunner::Run(Step step, bool whole) {
  const auto examples = parts_.sampler.Batch(step);
  double loss = 0;
  if (examples.empty()) {
    RETURN_IF_ERROR(PushZeros(step));
  } else if (streaming_) {
    whole = whole || parts_.sampler.epoch(step + 1) > parts_.sampler.epoch(step);
    ASSIGN_OR_RETURN(loss, PushFragments(step, examples, whole));
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
  {
    const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for parameters", {.step = step});
    RETURN_IF_ERROR(parts_.client.WaitAll());
  }
  const std::vector<std::span<float>> parameters = Replica();
  const std::vector<std::span<float>> gradient(local_gradient_.begin(), local_gradient_.end());
  BatchResult trained;
  uint32_t local_step = 0;
  size_t pushed_examples = 0;
  local_steps_->Begin(parameters);
  for (const auto part : Parts(examples, uint64_t{options_.batch_size} * options_.accumulate)) {
    ASSIGN_OR_RETURN(const bool finite,
                     TakeLocalStep(step, local_step++, part, parameters, trained));
    if (finite) pushed_examples += part.size();
  }
  local_steps_->Finish(parameters, gradient);
  Delay();
  parts_.client.BeginStep(step, static_cast<uint32_t>(pushed_examples));
  for (auto i = static_cast<uint32_t>(gradient.size()); i-- > 0;) {
    parts_.client.Ready(i, gradient[i]);
  }
  return trained.mean_loss();
}

absl::StatusOr<bool> StepRunner::TakeLocalStep(Step step, uint32_t local_step,
                                               std::span<const uint32_t> examples,
                                               client::LocalSteps::Tensors parameters,
                                               BatchResult& trained) {
  const std::vector<std::span<float>> gradient(local_gradient_.begin(), local_gradient_.end());
  const Model::Gate open = [](uint32_t) { return absl::OkStatus(); };
  const Model::Sink copy = [&](uint32_t i, const TensorGradient& values) {
    std::copy(values.values.begin(), values.values.end(), gradient[i].begin());
  };
  ASSIGN_OR_RETURN(const BatchResult result, TrainOn(step, local_step, examples, open, copy));
  trained += result;
  const bool finite = local_steps_->Apply(parameters, gradient, numbers_.loss_scale());
  numbers_.AddLocalStep(step, finite);
  return finite;
}

absl::StatusOr<double> StepRunner::PushFragments(Step step, std::span<const uint32_t> examples,
                                                 bool whole) {
  {
    const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for parameters", {.step = step});
    RETURN_IF_ERROR(parts_.client.WaitAll());
  }
  const std::vector<std::span<float>> replica = Replica();
  streaming_->Follow(step, replica);
  // The evaluator expects the servers' parameters in the model.
  Bind(streaming_->parameters());
  const absl::Cleanup bind_replica = [&] { Bind(replica); };
  BatchResult trained;
  const auto parts = Parts(examples, uint64_t{options_.batch_size} * options_.accumulate);
  Delay();
  // The weight is known before the first push, so it has the examples of skipped local steps, too.
  parts_.client.BeginStep(step, static_cast<uint32_t>(examples.size()));
  RETURN_IF_ERROR(StreamLocalSteps(step, parts, whole, trained));
  streaming_->Finish(step + 1);
  return trained.mean_loss();
}

absl::Status StepRunner::StreamLocalSteps(Step step,
                                          std::span<const std::span<const uint32_t>> parts,
                                          bool whole, BatchResult& trained) {
  client::StreamingSteps& streaming = *streaming_;
  const std::vector<std::vector<ShardId>>& fragments = parts_.client.fragments().shards();
  const std::vector<std::span<float>> replica = Replica();
  uint32_t done = 0;
  const auto train_until = [&](size_t end) -> absl::Status {
    for (; done < end; ++done) {
      RETURN_IF_ERROR(
          TakeLocalStep(step, done, parts[done], streaming.parameters(), trained).status());
    }
    return absl::OkStatus();
  };
  const auto push = [&](uint32_t f) {
    streaming.Take(fragments[f]);
    parts_.client.fragments().Ready(f, streaming.differences());
  };
  const auto mix = [&](uint32_t f, float own) -> absl::Status {
    const TraceSpan wait(parts_.tracer, kTrainingLane, "wait for parameters", {.step = step});
    RETURN_IF_ERROR(parts_.client.fragments().Wait(f));
    streaming.Mix(fragments[f], replica, own);
    return absl::OkStatus();
  };
  for (const client::FragmentMove& move :
       client::MovesOfStep(options_.local, static_cast<uint32_t>(parts.size()), whole)) {
    RETURN_IF_ERROR(train_until(move.local_steps));
    if (move.mixes) {
      RETURN_IF_ERROR(mix(move.fragment, move.own));
    } else {
      push(move.fragment);
    }
  }
  return absl::OkStatus();
}

std::vector<std::span<float>> StepRunner::Replica() const {
  std::vector<std::span<float>> tensors;
  for (uint32_t i = 0; i < parts_.model.tensors().size(); ++i) {
    tensors.push_back(parts_.client.replica(i));
  }
  return tensors;
}

void StepRunner::Bind(client::LocalSteps::Tensors parameters) {
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    parts_.model.Bind(i, parameters[i], Model::Place::kHost);
  }
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
