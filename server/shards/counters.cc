#include "server/shards/counters.h"

#include <algorithm>

namespace thinwire {
namespace {

// The maximum number of steps that Counters records, which are those whose round has closed at some
// shards only. If the frontiers of the shards differ by more steps, the oldest records are dropped.
constexpr size_t kMaxSteps = 4096;

void CountVerdict(Verdict verdict, StatusReply& counts) {
  switch (verdict) {
    case Verdict::kAccept:
      return counts.set_accepted_pushes(counts.accepted_pushes() + 1);
    case Verdict::kStale:
      return counts.set_stale_pushes(counts.stale_pushes() + 1);
    case Verdict::kFenced:
      return counts.set_fenced_pushes(counts.fenced_pushes() + 1);
    case Verdict::kRepeat:
      return counts.set_repeated_pushes(counts.repeated_pushes() + 1);
    case Verdict::kLate:
      return counts.set_late_pushes(counts.late_pushes() + 1);
    case Verdict::kEarly:
      return counts.set_early_pushes(counts.early_pushes() + 1);
    case Verdict::kRefused:
      return counts.set_refused_pushes(counts.refused_pushes() + 1);
  }
}

}  // namespace

void Counters::SetShardCount(size_t shard_count) {
  absl::MutexLock lock(&mu_);
  shard_count_ = shard_count;
}

void Counters::Count(const Effects& effects) {
  if (!effects.judgement.has_value() && effects.rounds.empty()) return;
  absl::MutexLock lock(&mu_);
  if (effects.judgement.has_value()) CountJudgement(*effects.judgement);
  for (const ClosedRound& round : effects.rounds) CountRound(round);
}

void Counters::CountJudgement(const Judgement& judgement) {
  CountVerdict(judgement.again ? Verdict::kRepeat : judgement.verdict, counts_);
  if (judgement.dropped) counts_.set_dropped_pushes(counts_.dropped_pushes() + 1);
  if (judgement.uncompensated) {
    counts_.set_uncompensated_pushes(counts_.uncompensated_pushes() + 1);
  }
  if (judgement.verdict == Verdict::kAccept && !judgement.again) {
    ++(*counts_.mutable_staleness())[std::min(judgement.staleness, kMaxStaleness)];
  }
}

void Counters::CountRound(const ClosedRound& round) {
  PartlyClosedStep& step = steps_[round.step];
  if (step.shard_count == 0) step.accepted = round.accepted;
  if (!step.split && step.accepted != round.accepted) {
    step.split = true;
    counts_.set_split_steps(counts_.split_steps() + 1);
  }
  if (++step.shard_count >= shard_count_) steps_.erase(round.step);
  if (steps_.size() > kMaxSteps) steps_.erase(steps_.begin());
}

void Counters::FillIn(StatusReply& reply) const {
  absl::MutexLock lock(&mu_);
  reply.MergeFrom(counts_);
}

}  // namespace thinwire
