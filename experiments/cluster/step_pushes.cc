#include "experiments/cluster/step_pushes.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "client/encode/gradient.h"
#include "common/base/status_macros.h"
#include "kernels/reductions.h"

namespace thinwire::lab {
namespace {

// The gradient of a step: one array for all tensors, which payloads may share.
struct Gradient {
  explicit Gradient(const Partition& partition)
      : values(std::make_shared_for_overwrite<float[]>(partition.value_count())) {
    size_t begin = 0;
    for (const TensorShape& tensor : partition.tensors()) {
      tensors.emplace_back(values.get() + begin, tensor.value_count());
      begin += tensor.value_count();
    }
    const_tensors.assign(tensors.begin(), tensors.end());
  }

  std::shared_ptr<float[]> values;
  std::vector<std::span<float>> tensors;
  std::vector<std::span<const float>> const_tensors;
};

}  // namespace

absl::StatusOr<GradientResult> TakeLocalSteps(LearningTask& task, WorkerId worker, Step step,
                                              uint32_t first, uint32_t end, Tensors parameters,
                                              Tensors gradient, client::LocalSteps& local) {
  GradientResult sum;
  for (uint32_t i = first; i < end; ++i) {
    ASSIGN_OR_RETURN(const GradientResult result,
                     task.Gradient(worker, step, i, parameters, gradient));
    if (result.examples == 0) break;
    // A local step whose gradient is not finite is skipped, as in worker/trainer/trainer.cc.
    if (!local.Apply(parameters, gradient)) continue;
    sum.loss_sum += result.loss_sum;
    sum.examples += result.examples;
  }
  return sum;
}

absl::StatusOr<GradientResult> ComputeGradient(LearningTask& task, WorkerId worker, Step step,
                                               Tensors parameters, Tensors gradient,
                                               client::LocalSteps* local) {
  if (local == nullptr) {
    return task.Gradient(worker, step, /*local_step=*/0, parameters, gradient);
  }
  local->Begin(parameters);
  ASSIGN_OR_RETURN(const GradientResult sum, TakeLocalSteps(task, worker, step, 0, local->count(),
                                                            parameters, gradient, *local));
  local->Finish(parameters, gradient);
  return sum;
}

absl::StatusOr<StepPushes> ComputePushes(LearningTask& task, WorkerId worker, Step step,
                                         Tensors parameters, const StepEncoder& encoder) {
  const Partition& partition = encoder.partition;
  client::PushEncoder& push_encoder = encoder.encoder;
  client::GradientClip& clip = encoder.clip;
  const client::GtopkReturns* const returns = encoder.returns;
  const Gradient gradient(partition);
  StepPushes computed;
  ASSIGN_OR_RETURN(computed.gradient, ComputeGradient(task, worker, step, parameters,
                                                      gradient.tensors, encoder.local));
  const uint32_t examples = computed.gradient.examples;
  clip.Begin();
  for (uint32_t i = 0; clip.clips() && i < gradient.tensors.size(); ++i) {
    // A step without examples has no gradient. It is encoded as a push without values.
    clip.Ready(i, examples > 0 ? kernels::SumOfSquares(gradient.tensors[i]) : 0);
  }
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    const std::vector<Segment>& segments = partition.segments(shard);
    RETURN_IF_ERROR(push_encoder.Begin(
        {.shard = shard, .step = step, .examples = examples},
        {.segments = segments,
         .tensors = gradient.const_tensors,
         .owner = segments.size() == 1 ? gradient.values : nullptr,
         // GtopkReturns keeps payloads for longer than the gradient's memory should live.
         .may_alias = returns == nullptr || !returns->Keeps(shard)},
        clip.factor()));
    ASSIGN_OR_RETURN(client::PushEncoder::Encoded encoded, push_encoder.Finish());
    computed.pushes.push_back(std::move(encoded.push));
  }
  return computed;
}

}  // namespace thinwire::lab
