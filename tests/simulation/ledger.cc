#include "tests/simulation/ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <sstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/codec/sparse/index_list.h"
#include "server/core/testing/fakes.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/store.h"
#include "server/core/worker_table.h"

namespace thinwire::simulation {
namespace {

// The largest difference of masses if the push codec rounds to values that are no whole numbers.
constexpr double kInexactTolerance = 0.5;

// The largest difference of a factor, because the shards round the mean of the gradients.
constexpr double kFactorTolerance = 1e-5;

constexpr Incarnation kNoEnd{std::numeric_limits<uint64_t>::max()};

double Sum(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the squared norm of the average of GRADIENTS, the accepted ones of a round.
double SquaredNormOfMean(const auto& gradients) {
  std::vector<double> sum(kShardValues);
  double weight = 0;
  for (const auto& gradient : gradients) {
    const std::vector<float> values = Values(gradient.payload);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]} * gradient.examples;
    weight += static_cast<double>(uint64_t{gradient.examples} + gradient.late_examples);
  }
  double squares = 0;
  for (const double value : sum) squares += value / weight * (value / weight);
  return squares;
}

}  // namespace

Mass MassOf(const ByteChain& payload, uint32_t examples, uint32_t late_examples) {
  if (payload.empty()) return {};
  return {Sum(Values(payload, kShardValues)), int64_t{examples} + late_examples};
}

void ShardLedger::Require(bool holds, const std::string& claim) {
  if (!holds) violations_.push_back(claim);
}

uint64_t ShardLedger::clipped_count() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(history_, [](const Update& update) { return update.factor < 1; }));
}

uint64_t ShardLedger::verdicts(Verdict verdict) const {
  const auto found = verdicts_.find(verdict);
  return found == verdicts_.end() ? 0 : found->second;
}

void ShardLedger::AddProduced(WorkerId worker, Incarnation incarnation, const Mass& mass) {
  if (incarnation >= restored_[worker.value]) accounts_[worker.value][incarnation] += mass;
}

void ShardLedger::AddUnanswered(const GradientId& id, const Mass& mass) {
  if (id.incarnation >= restored_[id.worker.value]) unanswered_[id] = mass;
}

void ShardLedger::Reset(WorkerId worker, Incarnation incarnation, std::optional<Mass> account) {
  newest_[worker.value] = restored_[worker.value] = incarnation;
  accounts_[worker.value] = {{incarnation, account.value_or(FoundOf(worker, kNoEnd))}};
  std::erase_if(unanswered_, [worker](const auto& entry) { return entry.first.worker == worker; });
  // An earlier process may still receive the verdicts of its undone pushes.
  for (auto& [id, mass] : rolled_back_) {
    if (id.worker == worker) mass = Mass();
  }
}

void ShardLedger::CloseUnanswered(WorkerId worker, Incarnation incarnation) {
  newest_[worker.value] = std::max(newest_[worker.value], incarnation);
  const auto waits = [](const GradientId& id) {
    return [&id](const Accepted& gradient) { return gradient.id == id; };
  };
  for (auto at = unanswered_.begin(); at != unanswered_.end();) {
    const auto& [id, mass] = *at;
    const bool is_old = id.worker == worker && id.incarnation < incarnation;
    // The part of a gradient that gTop-k selects is not known before the update.
    if (!is_old || std::ranges::any_of(pending_, waits(id))) {
      ++at;
      continue;
    }
    accounts_[worker.value][id.incarnation] -= mass - FoundOf(id);
    at = unanswered_.erase(at);
  }
}

Mass ShardLedger::AccountOf(WorkerId worker, Incarnation incarnation) const {
  // The process that has restored a residual owns the whole account. Pushes that were undone since
  // then may belong to earlier processes.
  const bool restored = incarnation == restored_[worker.value];
  Mass account = restored ? SumOf(worker) : FoundOf(worker, incarnation);
  if (const auto part = accounts_[worker.value].find(incarnation);
      !restored && part != accounts_[worker.value].end()) {
    account += part->second;
  }
  // Values that gTop-k did not select and whose return was lost are in no residual.
  for (const auto& [id, mass] : unanswered_) {
    if (id.worker == worker && (restored || id.incarnation == incarnation)) {
      account -= mass - FoundOf(id);
    }
  }
  return account;
}

Mass ShardLedger::UndoneSince(WorkerId worker, size_t count, Step step) const {
  Mass sum;
  for (size_t i = count; i < undone_.size(); ++i) {
    const auto& [id, mass] = undone_[i];
    if (id.worker == worker && id.step < step) sum += mass;
  }
  return sum;
}

void ShardLedger::CheckVerdict(const GradientId& id, Verdict verdict) {
  if (verdict == Verdict::kAccept) {
    Require(IsAccepted(id) || rolled_back_.contains(id),
            absl::StrCat("the acknowledged push of ", NameOf(id), " is not in the shard"));
  } else if (verdict == Verdict::kLate) {
    Require(!IsAccepted(id), absl::StrCat("the late push of ", NameOf(id), " is in the shard"));
  } else {
    Require(false, absl::StrCat("the push of ", NameOf(id), " got an unexpected verdict"));
  }
}

void ShardLedger::CheckReplica(Generation generation, Version version,
                               std::span<const float> values) {
  const auto known = values_.find({generation, version});
  Require(known != values_.end() && std::ranges::equal(known->second, values),
          absl::StrCat("a replica differs from version ", version.value));
}

void ShardLedger::Record(const Event& event, const Effects& effects, const Shard& shard,
                         LogSequence sequence) {
  recorded_ = std::max(recorded_, sequence);
  const auto* push = std::get_if<PushEvent>(&event);
  if (push != nullptr) RecordVerdict(*push, *effects.judgement);
  if (shard.version().value > history_.size()) RecordUpdate(event, shard);
  if (shard.seeded()) RecordValues(shard);
  if (shard.rule() != rule_) ++rule_changes_;
  rule_ = shard.rule();
  CheckBound(effects, shard);
}

void ShardLedger::RecordVerdict(const PushEvent& push, const Judgement& judgement) {
  const GradientId id = {push.worker, push.incarnation, push.step};
  const Verdict verdict = judgement.verdict;
  if (verdict == Verdict::kFenced) ++verdicts_[verdict];
  if (verdict == Verdict::kFenced || verdict == Verdict::kStale) return;
  Require(verdict != Verdict::kEarly, absl::StrCat("early: ", NameOf(id)));
  if (verdict == Verdict::kRepeat || judgement.again) return;
  ++verdicts_[verdict];
  Require(judged_.emplace(push.generation, id).second,
          absl::StrCat("the push of ", NameOf(id), " was judged twice"));
  if (const auto undone = rolled_back_.find(id); undone != rolled_back_.end()) {
    accounts_[id.worker.value][id.incarnation] += undone->second;
    undone_.emplace_back(id, Mass() - undone->second);
    rolled_back_.erase(undone);
  }
  if (verdict != Verdict::kAccept || push.examples == 0) return;
  for (const Accepted* other : AllAccepted()) {
    Require(other->id.worker != id.worker || other->id.step != id.step,
            absl::StrCat("two pushes of ", NameOf(id), " were accepted"));
  }
  pending_.push_back({id, push.examples, push.late_examples, push.payload,
                      MassOf(push.payload.bytes(), push.examples, push.late_examples)});
}

void ShardLedger::RecordUpdate(const Event& event, const Shard& shard) {
  Require(shard.version().value == history_.size() + 1, "two updates in one event");
  Require(!pending_.empty(), "an update without gradients");
  if (job_->shard.sparse_updates.unselected_owner == UnselectedOwner::kWorkers) {
    const auto selected = DecodeIndexList(shard.selected_list(), kShardValues).value();
    for (Accepted& gradient : pending_) {
      const std::vector<float> values = Values(gradient.payload);
      gradient.applied.values = 0;
      for (const uint32_t index : selected) gradient.applied.values += values[index];
    }
  }
  for (const Accepted& gradient : pending_) {
    unpublished_ = std::min(unpublished_.value_or(gradient.id.step), gradient.id.step);
  }
  if (rule_.ordered_fold) {
    std::ranges::sort(pending_, {}, [](const Accepted& gradient) { return gradient.id.worker; });
  }
  const auto* clip = std::get_if<ClipEvent>(&event);
  history_.push_back({std::exchange(pending_, {}), clip == nullptr ? 1 : clip->factor});
}

void ShardLedger::RecordValues(const Shard& shard) {
  const Version newest = job_->publishes() ? shard.log()->newest() : shard.version();
  const std::span<const float> values = job_->publishes() ? shard.published() : shard.masters();
  if (!values_.try_emplace({generation_, newest}, values.begin(), values.end()).second) return;
  if (newest == shard.version()) unpublished_ = std::nullopt;
  Require(!job_->publishes() || job_->shard.publish->codec.has_value() ||
              newest != shard.version() || std::ranges::equal(values, shard.masters()),
          absl::StrCat("version ", newest.value, " is not published exactly"));
}

void ShardLedger::CheckBound(const Effects& effects, const Shard& shard) {
  Require(shard.frontier() >= frontier_, "the frontier fell");
  frontier_ = shard.frontier();
  for (const ReadAnswer& answer : effects.answers) {
    Require(!shard.next_rule().has_value() || answer.step < shard.next_rule()->from,
            absl::StrCat("step ", answer.step.value, " began before its rule"));
    if (rule_.slack == kUnboundedSlack) continue;
    Require(answer.step <= StepsAfter(frontier_, rule_.slack),
            absl::StrCat("step ", answer.step.value, " began at frontier ", frontier_.value));
    for (const Accepted& gradient : pending_) {
      Require(gradient.id.step >= frontier_,
              absl::StrCat("step ", gradient.id.step.value, " is missing at frontier ",
                           frontier_.value));
    }
    Require(!job_->publishes() || !unpublished_.has_value() || *unpublished_ >= frontier_,
            absl::StrCat("unpublished at frontier ", frontier_.value));
  }
}

void ShardLedger::CheckRecovered(const Shard& shard, LogSequence applied) {
  Require(applied >= recorded_, absl::StrCat("record ", recorded_, " had effects and is lost (the ",
                                             "log ends at record ", applied, ")"));
  Require(shard.version().value == history_.size(), "the recovered version is another one");
  Require(shard.frontier() == frontier_, "the recovered frontier is another one");
  Require(shard.rule() == rule_, "the recovered rule is another one");
}

void ShardLedger::RollBack(const Shard& shard, Generation generation) {
  const Version version = shard.version();
  Require(version.value <= history_.size(), "a rollback to a version that never existed");
  for (size_t i = version.value; i < history_.size(); ++i) {
    for (const Accepted& gradient : history_[i].gradients) Undo(gradient);
  }
  for (const Accepted& gradient : pending_) Undo(gradient);
  history_.resize(std::min<size_t>(history_.size(), version.value));
  pending_.clear();
  generation_ = generation;
  unpublished_ = std::nullopt;
  frontier_ = shard.frontier();
  rule_ = shard.rule();
}

void ShardLedger::Undo(const Accepted& gradient) {
  accounts_[gradient.id.worker.value][gradient.id.incarnation] -= gradient.applied;
  rolled_back_[gradient.id] = gradient.applied;
  undone_.emplace_back(gradient.id, gradient.applied);
}

std::vector<const ShardLedger::Accepted*> ShardLedger::AllAccepted() const {
  std::vector<const Accepted*> all;
  for (const Update& update : history_) {
    for (const Accepted& gradient : update.gradients) all.push_back(&gradient);
  }
  for (const Accepted& gradient : pending_) all.push_back(&gradient);
  return all;
}

Mass ShardLedger::FoundOf(const GradientId& id) const {
  const auto undone = rolled_back_.find(id);
  if (undone != rolled_back_.end()) return undone->second;
  for (const Accepted* gradient : AllAccepted()) {
    if (gradient->id == id) return gradient->applied;
  }
  return {};
}

Mass ShardLedger::FoundOf(WorkerId worker, Incarnation end) const {
  Mass found;
  for (const Accepted* gradient : AllAccepted()) {
    const GradientId& id = gradient->id;
    if (id.worker == worker && id.incarnation < end) found += gradient->applied;
  }
  return found;
}

Mass ShardLedger::SumOf(WorkerId worker) const {
  Mass sum;
  for (const auto& [incarnation, mass] : accounts_[worker.value]) sum += mass;
  return sum;
}

bool ShardLedger::IsAccepted(const GradientId& id) const {
  const std::vector<const Accepted*> all = AllAccepted();
  return std::ranges::any_of(all, [&id](const Accepted* gradient) { return gradient->id == id; });
}

void ShardLedger::CheckReplay(const Shard& shard) {
  const SparseUpdateSpec& sparse = job_->shard.sparse_updates;
  Store store(kShardValues, 0, *job_->optimizer, *job_->schedule, sparse);
  store.Seed(Fp32Payload(seed_));
  for (const Update& update : history_) {
    Accumulator accumulator(kShardValues, sparse.WantsSparse());
    for (const Accepted& gradient : update.gradients) {
      accumulator.Fold(
          {gradient.id.worker, gradient.examples, gradient.late_examples, gradient.payload});
    }
    store.Apply(accumulator, update.factor);
  }
  Require(std::memcmp(store.masters().data(), shard.masters().data(),
                      kShardValues * sizeof(float)) == 0,
          "a replay of the accepted pushes gives other parameters");
}

void ShardLedger::Close(const Shard& shard) {
  // A full round waits for ever if a server was lost.
  Require(pending_.empty() || shard.full(), "an accepted gradient is in no update");
  Require(shard.version().value == history_.size(),
          "the version differs from the number of updates");
  for (const auto& [id, mass] : unanswered_) {
    accounts_[id.worker.value][id.incarnation] -= mass - FoundOf(id);
  }
  const double tolerance = job_->exact() ? 0 : kInexactTolerance;
  for (uint32_t w = 0; w < accounts_.size(); ++w) {
    const Mass found = FoundOf(WorkerId{w}, kNoEnd);
    const Mass account = SumOf(WorkerId{w});
    const Mass missing = account - found;
    std::ostringstream claim;
    claim << "worker " << w << ": the shard contains " << found << ", but " << account
          << " were produced and neither lost nor rolled back";
    Require(std::abs(missing.values) <= tolerance && missing.examples == 0, claim.str());
  }
  if (shard.seeded()) CheckReplay(shard);
}

std::string CheckFactors(double limit, std::span<const ShardLedger> ledgers) {
  struct Round {
    double squared_norm = 0;
    std::optional<double> factor;  // of the first shard that has closed the round
  };
  std::map<Step, Round> rounds;
  for (const ShardLedger& ledger : ledgers) {
    for (const ShardLedger::Update& update : ledger.history_) {
      Round& round = rounds[update.gradients.front().id.step];
      round.squared_norm += SquaredNormOfMean(update.gradients);
      if (round.factor.value_or(update.factor) != update.factor) return "the factors differ";
      round.factor = update.factor;
    }
    // The round of a shard whose server was lost may be closed at the other shards.
    if (ledger.pending_.empty()) continue;
    rounds[ledger.pending_.front().id.step].squared_norm += SquaredNormOfMean(ledger.pending_);
  }
  for (const auto& [step, round] : rounds) {
    const double norm = std::sqrt(round.squared_norm);
    const double expected = norm > limit ? limit / norm : 1;
    if (std::abs(round.factor.value_or(expected) - expected) > kFactorTolerance) {
      return absl::StrCat("step ", step.value, " has factor ", *round.factor, " (expected ",
                          expected, ")");
    }
  }
  return "";
}

}  // namespace thinwire::simulation
