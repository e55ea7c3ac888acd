#include "server/core/testing/sim_books.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"

namespace thinwire {
namespace {

// What a payload of the simulation amounts to is its first value.
uint64_t Amount(const PushEvent& push) {
  return push.examples == 0 ? 0 : static_cast<uint64_t>(Values(push.payload)[0]);
}

GradientName NameOf(const PushEvent& push) { return {push.worker, push.incarnation, push.step}; }

}  // namespace

void ShardBooks::Demand(bool holds, const std::string& claim) {
  if (!holds) complaints_.push_back(claim);
}

uint64_t ShardBooks::verdicts(Verdict verdict) const {
  const auto found = verdicts_.find(verdict);
  return found == verdicts_.end() ? 0 : found->second;
}

void ShardBooks::Enter(const Event& event, const Effects& effects, const Shard& shard,
                       const RecordingOptimizer& optimizer) {
  const auto* push = std::get_if<PushEvent>(&event);
  if (push != nullptr) EnterVerdict(*push, *effects.judgement);
  EnterUpdates(optimizer);
  if (publish_.has_value() && shard.seeded()) EnterPublished(shard);
  CheckBound(effects, shard);
}

void ShardBooks::EnterVerdict(const PushEvent& push, const Judgement& judgement) {
  if (judgement.again) return;
  ++verdicts_[judgement.verdict];
  // Clients of the simulation are faithful and nothing is rolled back.
  Demand(judgement.verdict != Verdict::kEarly, absl::StrCat("early: step ", push.step.value));
  Demand(judgement.verdict != Verdict::kStale, absl::StrCat("stale: step ", push.step.value));
  if (judgement.verdict == Verdict::kLate) {
    late_.insert(NameOf(push));
    late_examples_ += push.examples;
  }
  if (judgement.verdict != Verdict::kAccept || push.examples == 0) return;
  Demand(given_.emplace(push.worker, push.step).second,
         absl::StrCat("worker ", push.worker.value, " gave step ", push.step.value, " twice"));
  accepted_.insert(NameOf(push));
  pending_[NameOf(push)] = push;
  late_taken_ += push.late_examples;
}

void ShardBooks::EnterUpdates(const RecordingOptimizer& optimizer) {
  Demand(optimizer.updates().size() <= updates_ + 1, "two updates in one event");
  if (optimizer.updates().size() == updates_) return;
  std::vector<float> sum(kSimValues);
  uint64_t weight = 0;
  bool sparse = lazy_slots_;
  for (const auto& [name, push] : pending_) {
    sparse = sparse && PayloadIsSparse(push.payload);
    const std::vector<float> values = Values(push.payload);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i] * push.examples;
    weight += push.examples + push.late_examples;
    applied_ += Amount(push);
    unpublished_ = std::min(unpublished_.value_or(name.step), name.step);
  }
  // Then the optimizer sees the entries alone.
  if (sparse) std::erase(sum, 0.0f);
  const RecordedUpdate& update = optimizer.updates().back();
  Demand(!pending_.empty(), "an update of nothing");
  Demand(update.sum == sum,
         absl::StrCat("update ", updates_ + 1, " is not the sum of what was accepted"));
  Demand(update.update.gradient_scale == static_cast<float>(1.0 / static_cast<double>(weight)),
         absl::StrCat("update ", updates_ + 1, " is not divided by ", weight));
  pending_.clear();
  updates_ = optimizer.updates().size();
}

void ShardBooks::EnterPublished(const Shard& shard) {
  const Version newest = shard.log()->newest();
  const std::span<const float> values = shard.published();
  if (!published_.try_emplace(newest, values.begin(), values.end()).second) return;
  if (newest == shard.version()) unpublished_ = std::nullopt;
  Demand(publish_->codec.has_value() || std::ranges::equal(values, shard.masters()),
         absl::StrCat("version ", newest.value, " is not published exactly"));
}

void ShardBooks::Replicated(Version version, std::span<const float> values) {
  const auto published = published_.find(version);
  Demand(published != published_.end() && std::ranges::equal(published->second, values),
         absl::StrCat("a replica differs from version ", version.value));
}

void ShardBooks::CheckBound(const Effects& effects, const Shard& shard) {
  Demand(shard.frontier() >= frontier_, "the frontier fell");
  frontier_ = shard.frontier();
  if (rule_.slack == kUnboundedSlack) return;
  for (const Answer& answer : effects.answers) {
    Demand(answer.step <= StepsAfter(frontier_, rule_.slack),
           absl::StrCat("step ", answer.step.value, " began at frontier ", frontier_.value));
    // What is below the frontier is in the parameters: the reader misses slack steps at most.
    for (const auto& [name, push] : pending_) {
      Demand(name.step >= frontier_,
             absl::StrCat("step ", name.step.value, " is missing at frontier ", frontier_.value));
    }
    Demand(!publish_.has_value() || !unpublished_.has_value() || *unpublished_ >= frontier_,
           absl::StrCat("unpublished at frontier ", frontier_.value));
  }
}

void ShardBooks::Close(const Shard& shard) {
  uint64_t waiting = 0;
  for (const auto& [name, push] : pending_) waiting += Amount(push);
  // Rounds may be left open by the last one's going; by push nothing may be left.
  Demand(rule_.fold == Fold::kRound || waiting == 0, "accepted, and in no update");
  uint64_t lost = 0;
  for (const PushEvent& push : unanswered_) {
    if (accepted_.contains(NameOf(push))) continue;
    lost += Amount(push);
    late_owed_ += push.late_examples;
    if (late_.contains(NameOf(push))) late_owed_ += push.examples;
  }
  Demand(produced_ == applied_ + waiting + residual_ + lost,
         absl::StrCat("produced ", produced_, " but applied ", applied_, ", waiting ", waiting,
                      ", residual ", residual_, ", lost ", lost));
  Demand(late_taken_ + late_owed_ == late_examples_,
         absl::StrCat("late examples ", late_examples_, ", taken ", late_taken_, ", owed ",
                      late_owed_));
  Demand(shard.version().value == updates_, "versions are not the updates");
  if (publish_.has_value() && shard.seeded()) {
    Demand(shard.log()->newest() == shard.version(), "left unpublished");
  }
}

}  // namespace thinwire
