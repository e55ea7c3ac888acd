#include "server/core/testing/sim_ledger.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"

namespace thinwire {
namespace {

// Returns the amount of a simulated gradient, which is its first value.
uint64_t Amount(const PushEvent& push) {
  return push.examples == 0 ? 0 : static_cast<uint64_t>(Values(push.payload)[0]);
}

GradientId IdOf(const PushEvent& push) { return {push.worker, push.incarnation, push.step}; }

}  // namespace

void ShardLedger::Require(bool holds, const std::string& claim) {
  if (!holds) violations_.push_back(claim);
}

uint64_t ShardLedger::verdicts(Verdict verdict) const {
  const auto found = verdicts_.find(verdict);
  return found == verdicts_.end() ? 0 : found->second;
}

void ShardLedger::Record(const Event& event, const Effects& effects, const Shard& shard,
                         const RecordingOptimizer& optimizer) {
  const auto* push = std::get_if<PushEvent>(&event);
  if (push != nullptr) RecordVerdict(*push, *effects.judgement);
  RecordUpdates(optimizer);
  if (publish_.has_value() && shard.seeded()) RecordPublished(shard);
  CheckBound(effects, shard);
}

void ShardLedger::RecordVerdict(const PushEvent& push, const Judgement& judgement) {
  if (judgement.again) return;
  ++verdicts_[judgement.verdict];
  // Simulated clients follow the protocol and servers never lose state, so no push is early or
  // stale.
  Require(judgement.verdict != Verdict::kEarly, absl::StrCat("early: step ", push.step.value));
  Require(judgement.verdict != Verdict::kStale, absl::StrCat("stale: step ", push.step.value));
  if (judgement.verdict == Verdict::kLate) {
    late_.insert(IdOf(push));
    late_examples_ += push.examples;
  }
  if (judgement.verdict != Verdict::kAccept || push.examples == 0) return;
  Require(accepted_steps_.emplace(push.worker, push.step).second,
          absl::StrCat("worker ", push.worker.value, " pushed step ", push.step.value, " twice"));
  accepted_.insert(IdOf(push));
  pending_[IdOf(push)] = push;
  late_credited_ += push.late_examples;
}

void ShardLedger::RecordUpdates(const RecordingOptimizer& optimizer) {
  Require(optimizer.updates().size() <= updates_ + 1, "two updates in one event");
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
  // If slots are lazy and all pushes are sparse, the optimizer receives only the entries of the sum
  // and no zeros between the entries.
  if (sparse) std::erase(sum, 0.0f);
  const RecordedUpdate& update = optimizer.updates().back();
  Require(!pending_.empty(), "an update without gradients");
  Require(update.sum == sum,
          absl::StrCat("update ", updates_ + 1, " is not the sum of the accepted gradients"));
  Require(update.update.gradient_scale == static_cast<float>(1.0 / static_cast<double>(weight)),
          absl::StrCat("update ", updates_ + 1, " is not divided by ", weight));
  pending_.clear();
  updates_ = optimizer.updates().size();
}

void ShardLedger::RecordPublished(const Shard& shard) {
  const Version newest = shard.log()->newest();
  const std::span<const float> values = shard.published();
  if (!published_.try_emplace(newest, values.begin(), values.end()).second) return;
  if (newest == shard.version()) unpublished_ = std::nullopt;
  Require(publish_->codec.has_value() || std::ranges::equal(values, shard.masters()),
          absl::StrCat("version ", newest.value, " is not published exactly"));
}

void ShardLedger::CheckReplica(Version version, std::span<const float> values) {
  const auto published = published_.find(version);
  Require(published != published_.end() && std::ranges::equal(published->second, values),
          absl::StrCat("a replica differs from version ", version.value));
}

void ShardLedger::CheckBound(const Effects& effects, const Shard& shard) {
  Require(shard.frontier() >= frontier_, "the frontier fell");
  frontier_ = shard.frontier();
  if (rule_.slack == kUnboundedSlack) return;
  for (const ReadAnswer& answer : effects.answers) {
    Require(answer.step <= StepsAfter(frontier_, rule_.slack),
            absl::StrCat("step ", answer.step.value, " began at frontier ", frontier_.value));
    // The parameters in an answer must include every accepted gradient of a step below the
    // frontier.
    for (const auto& [name, push] : pending_) {
      Require(name.step >= frontier_,
              absl::StrCat("step ", name.step.value, " is missing at frontier ", frontier_.value));
    }
    Require(!publish_.has_value() || !unpublished_.has_value() || *unpublished_ >= frontier_,
            absl::StrCat("unpublished at frontier ", frontier_.value));
  }
}

void ShardLedger::Close(const Shard& shard) {
  uint64_t waiting = 0;
  for (const auto& [name, push] : pending_) waiting += Amount(push);
  // In modes with rounds, the last round may stay open when the last worker leaves. No update
  // contains the gradients of that round. In modes without rounds (Fold::kPush), every accepted
  // gradient must be in an update.
  Require(rule_.fold == Fold::kRound || waiting == 0, "an accepted gradient is in no update");
  uint64_t lost = 0;
  for (const PushEvent& push : unanswered_) {
    if (accepted_.contains(IdOf(push))) continue;
    lost += Amount(push);
    late_owed_ += push.late_examples;
    if (late_.contains(IdOf(push))) late_owed_ += push.examples;
  }
  Require(produced_ == applied_ + waiting + residual_ + lost,
          absl::StrCat("produced ", produced_, " but applied ", applied_, ", pending ", waiting,
                       ", residual ", residual_, ", lost ", lost));
  Require(late_credited_ + late_owed_ == late_examples_,
          absl::StrCat("late examples ", late_examples_, ", credited ", late_credited_, ", owed ",
                       late_owed_));
  Require(shard.version().value == updates_, "the version differs from the number of updates");
  if (publish_.has_value() && shard.seeded()) {
    Require(shard.log()->newest() == shard.version(), "the newest version is not published");
  }
}

}  // namespace thinwire
