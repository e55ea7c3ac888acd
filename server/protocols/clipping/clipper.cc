#include "server/protocols/clipping/clipper.h"

#include <span>
#include <utility>

namespace thinwire {

void Clipper::Applied(ShardId shard, const Effects& effects) {
  const std::optional<FullRound> part = PartOf(effects);
  if (!part.has_value()) return;
  absl::MutexLock lock(&mu_);
  if (!sums_.has_value()) {
    const std::vector<ShardId> own = shards_.partition().ShardsOf(identity_.server);
    sums_.emplace(std::span<const ShardId>(own));
  }
  if (effects.full_round.has_value()) newest_full_ = effects.full_round->step;
  const std::optional<FullRound> sum = sums_->Add(shard.value, *part);
  if (!sum.has_value()) return;
  // Posted with the lock held, so that the reports keep their order.
  control_.Post([this, sum = *sum, full = newest_full_ == sum->step] { Report(sum, full); });
}

void Clipper::Report(const FullRound& part, bool full) {
  if (stopped_) return;
  part_ = part;
  if (full) waiting_ = part.step;
  Finished(part);
}

void Clipper::Close(const FullRound& sum) {
  if (waiting_ != sum.step) return;
  const ClipEvent event = {sum.step, ClipFactor(limit_, sum.squared_norm)};
  shards_.ApplyToAll(event, [this, step = sum.step] {
    control_.Post([this, step] {
      if (waiting_ == step) waiting_.reset();
      EndCloses(absl::InfinitePast());
    });
  });
}

void Clipper::WhenClosed(absl::Time now, std::function<void()> then) {
  // A worker repeats its Leave, which does not begin the wait again.
  if (waiting_.has_value() && !give_up_at_.has_value()) give_up_at_ = now + kPatience;
  closes_.push_back(std::move(then));
  EndCloses(now);
}

void Clipper::EndCloses(absl::Time now) {
  if (!waiting_.has_value()) give_up_at_.reset();
  if (waiting_.has_value() && !stopped_ && give_up_at_ > now) return;
  for (const std::function<void()>& then : std::exchange(closes_, {})) then();
}

void Clipper::Tick(absl::Time now) { EndCloses(now); }

void Clipper::Stop(const absl::Status& /*status*/) {
  stopped_ = true;
  EndCloses(absl::InfinitePast());
}

}  // namespace thinwire
