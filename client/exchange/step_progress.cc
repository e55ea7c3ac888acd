#include "client/exchange/step_progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kCheckInterval = absl::Milliseconds(50);

}  // namespace

StepProgress::StepProgress(const Partition& partition, absl::Duration drain, Clock& clock)
    : drain_(drain),
      clock_(clock),
      tensors_of_shard_(partition.shard_count()),
      missing_(partition.shard_count(), false),
      used_(partition.shard_count(), false),
      missing_of_tensor_(partition.tensors().size(), 0) {
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    std::vector<uint32_t>& tensors = tensors_of_shard_[s];
    for (const Segment& segment : partition.segments(ShardId{s})) {
      tensors.push_back(segment.tensor);
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  }
  for (uint32_t t = 0; t < partition.tensors().size(); ++t) {
    shards_of_tensor_.push_back(partition.ShardsOfTensor(t));
  }
}

void StepProgress::OnShardExpected(ShardId shard) {
  absl::MutexLock lock(&mu_);
  // A worker that waits for other parameters does not use the present ones.
  used_[shard.value] = false;
  Expect(shard);
}

void StepProgress::Expect(ShardId shard) {
  if (missing_[shard.value]) return;
  missing_[shard.value] = true;
  ++missing_count_;
  for (const uint32_t tensor : tensors_of_shard_[shard.value]) ++missing_of_tensor_[tensor];
}

bool StepProgress::OnShardChanging(ShardId shard) {
  absl::MutexLock lock(&mu_);
  if (used_[shard.value]) return false;
  Expect(shard);
  return true;
}

void StepProgress::OnShardArrived(ShardId shard) {
  absl::MutexLock lock(&mu_);
  if (!missing_[shard.value]) return;
  missing_[shard.value] = false;
  --missing_count_;
  for (const uint32_t tensor : tensors_of_shard_[shard.value]) --missing_of_tensor_[tensor];
}

void StepProgress::OnStepEncoded() {
  absl::MutexLock lock(&mu_);
  encoded_ = true;
}

void StepProgress::OnShardEncoded(ShardId shard) {
  absl::MutexLock lock(&mu_);
  used_[shard.value] = false;
}

void StepProgress::OnUnjudged(size_t count) {
  absl::MutexLock lock(&mu_);
  unjudged_count_ = count;
}

void StepProgress::OnNextStep(Step next) {
  absl::MutexLock lock(&mu_);
  next_ = next;
}

void StepProgress::OnFailure(absl::Status failure) {
  absl::MutexLock lock(&mu_);
  if (failure_.ok()) failure_ = std::move(failure);
}

void StepProgress::OnRollback(Generation generation) {
  absl::MutexLock lock(&mu_);
  if (!failure_.ok()) return;
  rollback_ = generation;
  failure_ = absl::AbortedError(absl::StrCat(
      "the servers continue from an earlier step (generation ", generation.value, ")"));
}

void StepProgress::Stop() {
  absl::MutexLock lock(&mu_);
  if (!drain_end_.has_value()) drain_end_ = clock_.Now() + drain_;
}

absl::Time StepProgress::drain_end() const {
  absl::MutexLock lock(&mu_);
  return drain_end_.value_or(absl::InfiniteFuture());
}

void StepProgress::Drain() {
  absl::MutexLock lock(&mu_);
  draining_ = true;
}

void StepProgress::BeginStep() {
  absl::MutexLock lock(&mu_);
  encoded_ = false;
  next_.reset();
}

void StepProgress::Await(absl::FunctionRef<bool()> ended, absl::Time deadline) {
  const absl::Condition condition(&ended);
  while (true) {
    const absl::Duration left = deadline - clock_.Now();
    const bool checks = goes_on_ != nullptr && left > kCheckInterval;
    if (mu_.AwaitWithTimeout(condition, checks ? kCheckInterval : left) || !checks) return;
    mu_.Unlock();
    const bool goes_on = goes_on_();
    mu_.Lock();
    if (!goes_on) return;
  }
}

absl::Status StepProgress::Wait(absl::FunctionRef<bool()> ready, bool for_pushes) {
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ready() || !failure_.ok(); };
  const auto interrupted = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended() || drain_end_.has_value();
  };
  Await(interrupted, absl::InfiniteFuture());
  if (!ended() && drain_end_.has_value() && (for_pushes || draining_)) Await(ended, *drain_end_);
  if (!failure_.ok()) return failure_;
  return ready() ? absl::OkStatus() : absl::CancelledError("stopped");
}

absl::Status StepProgress::WaitTensor(uint32_t tensor) {
  const auto ready = [this, tensor]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return missing_of_tensor_[tensor] == 0;
  };
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Wait(ready, /*for_pushes=*/false));
  for (const ShardId shard : shards_of_tensor_[tensor]) used_[shard.value] = true;
  return absl::OkStatus();
}

absl::Status StepProgress::WaitAll() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return missing_count_ == 0; };
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Wait(ready, /*for_pushes=*/false));
  used_.assign(used_.size(), true);
  return absl::OkStatus();
}

bool StepProgress::HaveArrived(std::span<const ShardId> shards) const {
  return std::ranges::none_of(shards, [this](ShardId shard) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return missing_[shard.value];
  });
}

absl::Status StepProgress::WaitShards(std::span<const ShardId> shards) {
  const auto ready = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HaveArrived(shards); };
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Wait(ready, /*for_pushes=*/true));
  for (const ShardId shard : shards) used_[shard.value] = true;
  return absl::OkStatus();
}

bool StepProgress::WaitShardsOrStop(std::span<const ShardId> shards) {
  return WaitOrStop([&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HaveArrived(shards); });
}

absl::Status StepProgress::WaitJudged() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return unjudged_count_ == 0; };
  absl::MutexLock lock(&mu_);
  return Wait(ready, /*for_pushes=*/true);
}

bool StepProgress::judged() const {
  absl::MutexLock lock(&mu_);
  return unjudged_count_ == 0;
}

absl::Status StepProgress::WaitEncoded() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return encoded_; };
  absl::MutexLock lock(&mu_);
  return Wait(ready, /*for_pushes=*/true);
}

bool StepProgress::WaitNextOrStop() {
  return WaitOrStop([this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return next_.has_value(); });
}

bool StepProgress::WaitOrStop(absl::FunctionRef<bool()> ready) {
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ready() || !failure_.ok(); };
  const auto interrupted = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended() || drain_end_.has_value();
  };
  absl::MutexLock lock(&mu_);
  if (draining_) return false;
  Await(interrupted, absl::InfiniteFuture());
  return !ended();
}

absl::StatusOr<Step> StepProgress::WaitNext() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return next_.has_value(); };
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Wait(ready, /*for_pushes=*/true));
  return *next_;
}

absl::Status StepProgress::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

std::optional<Generation> StepProgress::rollback() const {
  absl::MutexLock lock(&mu_);
  return rollback_;
}

void StepProgress::Restart() {
  absl::MutexLock lock(&mu_);
  missing_.assign(missing_.size(), false);
  missing_of_tensor_.assign(missing_of_tensor_.size(), 0);
  missing_count_ = 0;
  used_.assign(used_.size(), false);
  unjudged_count_ = 0;
  encoded_ = false;
  next_.reset();
  failure_ = absl::OkStatus();
  rollback_.reset();
}

}  // namespace thinwire::client
