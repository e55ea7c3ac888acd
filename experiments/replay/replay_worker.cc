#include "experiments/replay/replay_worker.h"

#include <utility>

#include "client/replica/shard_values.h"
#include "common/status_macros.h"

namespace thinwire::lab {
namespace {

// Returns one array of zeros per tensor.
std::vector<std::vector<float>> ArraysOf(const Partition& partition) {
  std::vector<std::vector<float>> arrays;
  for (const TensorShape& tensor : partition.tensors()) arrays.emplace_back(tensor.value_count());
  return arrays;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayWorker>> ReplayWorker::Make(const Partition& partition,
                                                                 const ClientOptions& options) {
  ASSIGN_OR_RETURN(auto encoder, client::PushEncoder::Make(partition, options));
  return std::unique_ptr<ReplayWorker>(new ReplayWorker(partition, options, std::move(encoder)));
}

ReplayWorker::ReplayWorker(const Partition& partition, const ClientOptions& options,
                           std::unique_ptr<client::PushEncoder> encoder)
    : partition_(partition),
      worker_(options.worker),
      encoder_(std::move(encoder)),
      clip_(options.gradient_clip, options.worker_count, partition.tensors().size()),
      parameters_(ArraysOf(partition)),
      versions_(partition.shard_count()),
      pushes_(partition.shard_count()),
      next_(partition.shard_count()),
      missing_count_(partition.shard_count()) {}

bool ReplayWorker::Read(ShardId shard, Step step, std::span<const float> values, Version version) {
  reading_ = step;
  const std::vector<std::span<float>> tensors(parameters_.begin(), parameters_.end());
  client::Scatter(values, partition_.segments(shard), tensors);
  versions_[shard.value] = version;
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
  std::vector<std::vector<float>> gradient = ArraysOf(partition_);
  const std::vector<std::span<float>> tensors(gradient.begin(), gradient.end());
  const std::vector<std::span<const float>> const_tensors(gradient.begin(), gradient.end());
  const std::vector<std::span<float>> parameters(parameters_.begin(), parameters_.end());
  ASSIGN_OR_RETURN(const GradientResult result,
                   task.Gradient(worker_, reading_, parameters, tensors));
  clip_.Begin();
  for (uint32_t i = 0; clip_.clips() && i < tensors.size(); ++i) {
    clip_.Ready(i, result.examples > 0 ? client::SumOfSquares(tensors[i]) : 0);
  }
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    PushEntry push;
    push.shard = ShardId{s};
    push.step = reading_;
    push.examples = result.examples;
    push.computed_version = versions_[s];
    const client::ShardGradient shard_gradient = {
        .segments = partition_.segments(ShardId{s}), .tensors = const_tensors, .owner = nullptr};
    RETURN_IF_ERROR(encoder_->Begin(std::move(push), shard_gradient, clip_.factor()));
    ASSIGN_OR_RETURN(client::PushEncoder::Encoded encoded, encoder_->Finish());
    pushes_[s] = std::move(encoded.push);
  }
  return result;
}

bool ReplayWorker::HasPush(ShardId shard, Step step) const {
  return encoded_ == step && !WasJudged(shard, step);
}

absl::Status ReplayWorker::Judged(ShardId shard, Verdict verdict) {
  const PushEntry push = std::exchange(pushes_[shard.value], {});
  next_[shard.value] = push.step + 1;
  if (verdict == Verdict::kAccept) encoder_->Accepted(push);
  return verdict == Verdict::kLate ? encoder_->Late(push) : absl::OkStatus();
}

}  // namespace thinwire::lab
