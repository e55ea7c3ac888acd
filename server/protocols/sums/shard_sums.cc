#include "server/protocols/sums/shard_sums.h"

#include <span>
#include <utility>

#include "common/model/partition.h"

namespace thinwire {

bool ShardSums::IsMember(ShardId shard) const {
  return clip_norm_ > 0 || shards_.partition().SharesTensor(shard);
}

uint32_t ShardSums::NumberOf(ShardId shard) const {
  return clip_norm_ > 0 ? 0 : shards_.partition().segments(shard)[0].tensor;
}

std::vector<ShardId> ShardSums::MembersOf(ServerId server) const {
  std::vector<ShardId> members = shards_.partition().ShardsOf(server);
  std::erase_if(members, [this](ShardId shard) { return !IsMember(shard); });
  return members;
}

std::optional<RoundPart> ShardSums::PartOf(ShardId shard, const Effects& effects) const {
  if (effects.full_round.has_value()) {
    return RoundPart{effects.full_round->step, {{NumberOf(shard), effects.full_round->sums}}};
  }
  // A closed round with gradients was full before. One without gradients adds nothing.
  if (effects.rounds.empty() || !effects.rounds.back().accepted.empty()) return std::nullopt;
  return RoundPart{effects.rounds.back().step, {}};
}

void ShardSums::Applied(ShardId shard, const Effects& effects) {
  const std::optional<RoundPart> part = PartOf(shard, effects);
  if (!part.has_value() || !IsMember(shard)) return;
  absl::MutexLock lock(&mu_);
  if (!sums_.has_value()) {
    const std::vector<ShardId> own = MembersOf(identity_.server);
    sums_.emplace(std::span<const ShardId>(own));
  }
  if (effects.full_round.has_value()) newest_full_ = effects.full_round->step;
  const std::optional<RoundPart> sum = sums_->Add(shard.value, *part);
  if (!sum.has_value()) return;
  // Posted with the lock held, so that the reports keep their order.
  control_.Post([this, sum = *sum, full = newest_full_ == sum->step] { Report(sum, full); });
}

void ShardSums::Report(const RoundPart& part, bool full) {
  if (stopped_) return;
  part_ = part;
  if (full) waiting_ = part.step;
  Finished(part);
}

void ShardSums::Close(const RoundPart& sum) {
  if (waiting_ != sum.step) return;
  // A shard that does not wait ignores the event, whatever its sums are.
  const auto event_of = [&](ShardId shard) -> Event {
    const auto found = sum.sums.find(NumberOf(shard));
    return SumEvent{sum.step, found == sum.sums.end() ? SquareSums() : found->second};
  };
  shards_.ApplyToEach(event_of, [this, step = sum.step] {
    control_.Post([this, step] {
      if (waiting_ == step) waiting_.reset();
      EndCloses(absl::InfinitePast());
    });
  });
}

void ShardSums::WhenClosed(absl::Time now, std::function<void()> then) {
  // A worker repeats its Leave, which does not begin the wait again.
  if (waiting_.has_value() && !give_up_at_.has_value()) give_up_at_ = now + kPatience;
  closes_.push_back(std::move(then));
  EndCloses(now);
}

void ShardSums::EndCloses(absl::Time now) {
  if (!waiting_.has_value()) give_up_at_.reset();
  if (waiting_.has_value() && !stopped_ && give_up_at_ > now) return;
  for (const std::function<void()>& then : std::exchange(closes_, {})) then();
}

void ShardSums::Tick(absl::Time now) { EndCloses(now); }

void ShardSums::Stop(const absl::Status& /*status*/) {
  stopped_ = true;
  EndCloses(absl::InfinitePast());
}

}  // namespace thinwire
