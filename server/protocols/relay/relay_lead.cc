#include "server/protocols/relay/relay_lead.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "common/codec/payload.h"
#include "common/model/partition.h"
#include "server/core/event.h"

namespace thinwire {
namespace {

// Returns why the workers of MEMBERSHIP have left, all together.
Departure DepartureOf(const Membership& membership) {
  Departure all;
  for (uint32_t w = 0; w < membership.worker_count(); ++w) {
    const Member& member = membership.of(WorkerId{w});
    if (!member.left) continue;
    all.finished |= member.departure.finished;
    all.failed |= member.departure.failed;
    if (all.diverged.empty()) all.diverged = member.departure.diverged;
  }
  return all;
}

}  // namespace

void RelayLead::Applied(ShardId shard, const Effects& effects) {
  if (!effects.full_round.has_value()) return;
  const std::shared_ptr<const HostedModel> model = model_.Get();
  absl::MutexLock lock(&mu_);
  full_[shard] = effects.full_round->step;
  if (full_.size() < model->hosts().size()) return;
  control_.Post([this, steps = std::exchange(full_, {})]() mutable { Gather(std::move(steps)); });
}

void RelayLead::Gather(ShardSteps steps) {
  if (stopped_) return;
  ++under_way_count_;
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (tensors_.empty()) {
    for (const TensorShape& tensor : model->partition().tensors()) {
      tensors_.emplace_back(tensor.value_count());
    }
  }
  const auto copy = [this, model](const ShardHost& host, const Shard& shard) {
    const std::vector<Segment>& segments = model->partition().segments(host.id());
    const auto place_of = [this](const Segment& segment) {
      return std::span(tensors_[segment.tensor]).subspan(segment.offset, segment.count);
    };
    if (segments.size() == 1) return shard.CopyRelayed(place_of(segments[0]));
    FloatArray values(host.value_count());
    const RelayedPart part = shard.CopyRelayed(values);
    auto next = values.begin();
    for (const Segment& segment : segments) {
      const std::span<float> place = place_of(segment);
      std::copy(next, next + segment.count, place.begin());
      next += segment.count;
    }
    return part;
  };
  model->ForAllShards<RelayedPart>(
      copy, [this, steps = std::move(steps)](const std::vector<RelayedPart>& parts) {
        control_.Post([this, steps, parts] { Pass(steps, parts); });
      });
}

void RelayLead::Pass(const ShardSteps& steps, const std::vector<RelayedPart>& parts) {
  if (stopped_) return;
  if (join_.tensors().empty()) {
    // The shards of an earlier process have its workers, but none has come back.
    held_ = [this, steps, parts] { Pass(steps, parts); };
    return;
  }
  RelayedRound round;
  round.join = join_;
  for (const auto& [shard, step] : steps) round.step = std::max(round.step, step);
  // The shards differ if they have accepted gradients of different workers, for example because a
  // worker was lost between two pushes of a step. The other job weighs all values alike.
  uint64_t weight = 0;
  for (const RelayedPart& part : parts) {
    round.first |= part.first;
    if (part.weight > weight) round.rate_factor = part.rate_factor;
    weight = std::max(weight, part.weight);
  }
  round.examples = static_cast<uint32_t>(std::min<uint64_t>(weight, kMostExamples));
  for (const FloatArray& values : tensors_) round.tensors.emplace_back(values);
  relay_.Pass(std::move(round),
              [this, steps](const TensorValues& values) { Update(steps, values); });
}

void RelayLead::Joined(const JoinRequest& request) {
  join_ = request;
  active_ = true;  // not only in Tick: a short run may end before the next one
  if (held_ != nullptr) std::exchange(held_, nullptr)();
}

void RelayLead::Update(const ShardSteps& steps, const TensorValues& values) {
  const Partition& partition = model_.partition();
  const auto event_of = [&](ShardId shard) -> Event {
    const auto own = std::make_shared<FloatArray>(partition.value_count(shard));
    auto next = own->begin();
    for (const Segment& segment : partition.segments(shard)) {
      const std::span<const float> part =
          values[segment.tensor].subspan(segment.offset, segment.count);
      next = std::copy(part.begin(), part.end(), next);
    }
    return UpdateEvent{steps.at(shard), EncodedPayload(LendFp32(*own, own), own->size())};
  };
  model_.ApplyToEach(event_of, [this] { control_.Post([this] { --under_way_count_; }); });
}

void RelayLead::Tick(absl::Time /*now*/) {
  if (!membership_.Live().empty()) active_ = true;
  if (!active_ || !membership_.Live().empty() || under_way_count_ > 0) return;
  active_ = false;
  // The departures may still be on their way to the shards, and complete a last round there.
  model_.Get()->ForAllShards<int>(
      [](const ShardHost&, const Shard&) { return 0; },
      [this](const std::vector<int>&) { control_.Post([this] { PauseIfIdle(); }); });
}

void RelayLead::PauseIfIdle() {
  if (stopped_) return;
  if (under_way_count_ > 0 || !membership_.Live().empty()) {
    active_ = true;
    return;
  }
  relay_.Pause(DepartureOf(membership_));
}

}  // namespace thinwire
