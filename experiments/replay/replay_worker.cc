#include "experiments/replay/replay_worker.h"

#include <utility>

#include "client/replica/shard_values.h"
#include "common/base/status_macros.h"
#include "experiments/cluster/step_pushes.h"

namespace thinwire::lab {

absl::StatusOr<std::unique_ptr<ReplayWorker>> ReplayWorker::Make(const Partition& partition,
                                                                 const ClientOptions& options,
                                                                 const LocalStepsSpec& local) {
  ASSIGN_OR_RETURN(auto encoder, client::PushEncoder::Make(partition, options));
  return std::unique_ptr<ReplayWorker>(
      new ReplayWorker(partition, options, local, std::move(encoder)));
}

ReplayWorker::ReplayWorker(const Partition& partition, const ClientOptions& options,
                           const LocalStepsSpec& local,
                           std::unique_ptr<client::PushEncoder> encoder)
    : partition_(partition),
      worker_(options.worker),
      encoder_(std::move(encoder)),
      clip_(options.gradient_clip, options.worker_count, partition.tensors().size()),
      pushes_(partition.shard_count()),
      missing_count_(partition.shard_count()) {
  for (const TensorShape& tensor : partition.tensors()) {
    parameters_.emplace_back(tensor.value_count());
  }
  if (local.enabled()) local_.emplace(local, partition.tensors());
}

bool ReplayWorker::Read(ShardId shard, Step step, std::span<const float> values) {
  reading_ = step;
  const std::vector<std::span<float>> tensors(parameters_.begin(), parameters_.end());
  client::Scatter(values, partition_.segments(shard), tensors);
  return --missing_count_ == 0;
}

void ReplayWorker::Start(TaskPool& pool) {
  missing_count_ = partition_.shard_count();
  result_ = pool.Submit<absl::StatusOr<GradientResult>>(
      [this](LearningTask& task) { return Compute(task); });
}

absl::StatusOr<GradientResult> ReplayWorker::Wait() {
  absl::StatusOr<GradientResult> result = result_.get();
  if (result.ok()) encoded_ = reading_;
  return result;
}

absl::StatusOr<GradientResult> ReplayWorker::Compute(LearningTask& task) {
  const std::vector<std::span<float>> parameters(parameters_.begin(), parameters_.end());
  ASSIGN_OR_RETURN(StepPushes computed, ComputePushes(task, worker_, reading_, parameters,
                                                      {.partition = partition_,
                                                       .encoder = *encoder_,
                                                       .clip = clip_,
                                                       .local = local_ ? &*local_ : nullptr}));
  pushes_ = std::move(computed.pushes);
  return computed.gradient;
}

absl::Status ReplayWorker::Judged(ShardId shard, Verdict verdict) {
  const PushEntry push = std::exchange(pushes_[shard.value], {});
  if (verdict == Verdict::kRefused) encoder_->Refused(push);
  return verdict == Verdict::kLate ? encoder_->Late(push) : absl::OkStatus();
}

}  // namespace thinwire::lab
