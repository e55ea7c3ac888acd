#include "server/edge/counters.h"

#include <algorithm>

namespace thinwire {
namespace {

// Steps that some shard has not closed. More are open only where shards drift far apart; the oldest
// are then forgotten.
constexpr size_t kMostOpenSteps = 4096;

}  // namespace

void Counters::SetShardCount(size_t shard_count) {
  absl::MutexLock lock(&mu_);
  shard_count_ = shard_count;
}

void Counters::Count(const Effects& effects) {
  if (!effects.judgement.has_value() && effects.rounds.empty()) return;
  absl::MutexLock lock(&mu_);
  if (effects.judgement.has_value()) CountJudgement(*effects.judgement);
  for (const RoundClosed& round : effects.rounds) CountRound(round);
}

void Counters::CountJudgement(const Judgement& judgement) {
  if (judgement.again || judgement.verdict == Verdict::kRepeat) {
    ++repeated_;
    return;
  }
  ++verdicts_[static_cast<size_t>(judgement.verdict)];
  if (judgement.verdict == Verdict::kAccept) {
    ++staleness_[std::min(judgement.staleness, kMostStaleness)];
  }
}

void Counters::CountRound(const RoundClosed& round) {
  OpenStep& step = steps_[round.step];
  if (step.shard_count == 0) step.accepted = round.accepted;
  if (!step.split && step.accepted != round.accepted) {
    step.split = true;
    ++split_steps_;
  }
  if (++step.shard_count >= shard_count_) steps_.erase(round.step);
  if (steps_.size() > kMostOpenSteps) steps_.erase(steps_.begin());
}

void Counters::CountExpiry() {
  absl::MutexLock lock(&mu_);
  ++expirations_;
}

void Counters::CountPushPayload(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  push_bytes_ += bytes;
}

void Counters::CountParametersPayload(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  parameters_bytes_ += bytes;
}

void Counters::FillIn(StatusReply& reply) const {
  absl::MutexLock lock(&mu_);
  const auto count = [this](Verdict verdict) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return verdicts_[static_cast<size_t>(verdict)];
  };
  reply.set_accepted_pushes(count(Verdict::kAccept));
  reply.set_late_pushes(count(Verdict::kLate));
  reply.set_repeated_pushes(repeated_);
  reply.set_refused_pushes(count(Verdict::kRefused));
  reply.set_fenced_pushes(count(Verdict::kFenced));
  reply.set_stale_pushes(count(Verdict::kStale));
  reply.set_early_pushes(count(Verdict::kEarly));
  reply.set_lease_expirations(expirations_);
  reply.set_split_steps(split_steps_);
  for (const auto& [staleness, pushes] : staleness_)
    (*reply.mutable_staleness())[staleness] = pushes;
  reply.set_push_payload_bytes(push_bytes_);
  reply.set_parameters_payload_bytes(parameters_bytes_);
}

}  // namespace thinwire
