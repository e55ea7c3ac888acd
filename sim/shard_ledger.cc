#include "sim/shard_ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/codec/payload.h"
#include "common/codec/sparse/index_list.h"
#include "common/memory/byte_chain.h"
#include "server/core/testing/fakes.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/store.h"

namespace thinwire::sim {
namespace {

// The largest difference of a factor, because the shards round the mean of the gradients.
constexpr double kFactorTolerance = 1e-5;

double Sum(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

Mass MassOf(const PushEvent& push) {
  return {Sum(Values(push.payload)), int64_t{push.examples} + push.late_examples};
}

// Returns PAYLOAD in memory of its own.
CheckedPayload CopyOf(const CheckedPayload& payload) {
  return CheckPayload(ByteChain(payload.bytes().ToVector()), payload.count()).value();
}

}  // namespace

Mass& Mass::operator+=(const Mass& other) {
  values += other.values;
  examples += other.examples;
  return *this;
}

Mass& Mass::operator-=(const Mass& other) {
  values -= other.values;
  examples -= other.examples;
  return *this;
}

std::ostream& operator<<(std::ostream& out, const Mass& mass) {
  return out << mass.values << " of " << mass.examples << " examples";
}

std::string NameOf(const GradientId& id) {
  return absl::StrCat("w", id.worker.value, "/", id.incarnation.value, " step ", id.step.value);
}

double ShardLedger::SquaredNormOfMean(const UpdateGradients& gradients) {
  std::vector<double> sum;
  double weight = 0;
  for (const Accepted& gradient : gradients) {
    const std::vector<float> values = Values(gradient.payload);
    sum.resize(values.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]} * gradient.examples;
    weight += static_cast<double>(uint64_t{gradient.examples} + gradient.late_examples);
  }
  double squares = 0;
  for (const double value : sum) squares += value / weight * (value / weight);
  return squares;
}

template <typename Action>
void ShardLedger::ForEachAccepted(Action action) const {
  for (const Update& update : history_) {
    for (const Accepted& gradient : update.gradients) action(gradient);
  }
  for (const Accepted& gradient : pending_) action(gradient);
}

void ShardLedger::Require(bool holds, const std::string& claim) {
  if (!holds) violations_.push_back(claim);
}

uint64_t ShardLedger::clipped_count() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      history_, [this](const Update& update) { return FactorOf(update) < 1; }));
}

uint64_t ShardLedger::verdicts(Verdict verdict) const {
  const auto found = verdicts_.find(verdict);
  return found == verdicts_.end() ? 0 : found->second;
}

void ShardLedger::Begin(WorkerId worker, Incarnation incarnation, const Mass& residual) {
  accounts_[{worker, incarnation}] = FoundOf(worker, incarnation) + residual;
  // Its undone pushes are judged again, but their mass is not in the account.
  for (auto& [id, mass] : rolled_back_) {
    if (id.worker == worker && id.incarnation == incarnation) mass = Mass();
  }
}

Mass ShardLedger::AccountOf(WorkerId worker, Incarnation incarnation) const {
  const auto account = accounts_.find({worker, incarnation});
  return account == accounts_.end() ? Mass() : account->second;
}

bool ShardLedger::HasMass(WorkerId worker, Incarnation incarnation, const Mass& residual) const {
  const Mass missing = AccountOf(worker, incarnation) - FoundOf(worker, incarnation) - residual;
  return std::abs(missing.values) <= tolerance_ && missing.examples == 0;
}

void ShardLedger::CheckMass(WorkerId worker, Incarnation incarnation, const Mass& residual) {
  ++checked_masses_;
  if (HasMass(worker, incarnation, residual)) return;
  std::ostringstream claim;
  claim << "worker " << worker << "/" << incarnation << ": the shard contains "
        << FoundOf(worker, incarnation) << " and the residual " << residual << " (expected "
        << AccountOf(worker, incarnation) << " together)";
  Require(false, claim.str());
}

void ShardLedger::CheckVerdict(const GradientId& id, Verdict verdict) {
  if (verdict == Verdict::kAccept) {
    Require(IsAccepted(id) || rolled_back_.contains(id) || empty_.contains(id),
            absl::StrCat("the acknowledged push of ", NameOf(id), " is not in the shard"));
  } else if (verdict == Verdict::kLate) {
    Require(!IsAccepted(id), absl::StrCat("the late push of ", NameOf(id), " is in the shard"));
  } else {
    Require(verdict == Verdict::kFenced || verdict == Verdict::kStale,
            absl::StrCat("the push of ", NameOf(id), " got an unexpected verdict"));
  }
}

void ShardLedger::CheckReplica(Generation generation, Version version,
                               std::span<const float> values) {
  const auto known = values_.find({generation, version});
  Require(
      known != values_.end() && std::ranges::equal(known->second, values),
      absl::StrCat("a replica differs from version ", version.value, " of generation ",
                   generation.value, known == values_.end() ? ", which the shard never had" : ""));
  ++checked_replicas_;
}

void ShardLedger::Record(const Event& event, const Effects& effects, const Shard& shard,
                         LogSequence sequence) {
  recorded_ = std::max(recorded_, sequence);
  const auto* push = std::get_if<PushEvent>(&event);
  if (push != nullptr) RecordVerdict(*push, *effects.judgement);
  if (effects.full_round.has_value()) full_ = effects.full_round;
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
    accounts_[{id.worker, id.incarnation}] += undone->second;
    rolled_back_.erase(undone);
  }
  if (verdict != Verdict::kAccept) return;
  CheckStaleness(push);
  if (push.examples == 0) {
    empty_.insert(id);
    return;
  }
  ForEachAccepted([&](const Accepted& other) {
    Require(other.id.worker != id.worker || other.id.step != id.step,
            absl::StrCat("two pushes of ", NameOf(id), " were accepted"));
  });
  pending_.push_back({id, push.examples, push.late_examples, CopyOf(push.payload), MassOf(push)});
}

void ShardLedger::CheckStaleness(const PushEvent& push) {
  // A push whose parameters are those of an earlier generation names another history.
  if (rule_.slack == kUnboundedSlack || push.examples == 0 || generation_ != Generation{1}) return;
  const uint64_t bound = rule_.fold == Fold::kPush ? rule_.slack : rule_.in_flight;
  const auto require = [&](const Accepted& gradient) {
    Require(StepsAfter(gradient.id.step, bound) >= push.step,
            absl::StrCat(NameOf({push.worker, push.incarnation, push.step}),
                         " was computed without ", NameOf(gradient.id)));
  };
  for (size_t i = push.computed_version.value; i < history_.size(); ++i) {
    for (const Accepted& gradient : history_[i].gradients) require(gradient);
  }
  for (const Accepted& gradient : pending_) require(gradient);
}

void ShardLedger::RecordUpdate(const Event& event, const Shard& shard) {
  Require(shard.version().value == history_.size() + 1, "two updates in one event");
  Require(!pending_.empty(), "an update without gradients");
  const SparseUpdateSpec& sparse = options_.sparse_updates;
  if (sparse.selection_density.has_value() &&
      sparse.unselected_owner == UnselectedOwner::kWorkers) {
    const auto selected = DecodeIndexList(shard.selected_list(), options_.value_count).value();
    for (Accepted& gradient : pending_) {
      const std::vector<float> values = Values(gradient.payload);
      gradient.applied.values = 0;
      for (const uint32_t index : selected) gradient.applied.values += values[index];
    }
  }
  for (const Accepted& gradient : pending_) {
    unpublished_ = std::min(unpublished_.value_or(gradient.id.step), gradient.id.step);
  }
  const CodecId codec = PayloadCodec(pending_.front().payload);
  for (const Accepted& gradient : pending_) {
    Require(PayloadCodec(gradient.payload) == codec,
            "the gradients of an update have several codecs");
  }
  codecs_.insert(codec);
  if (rule_.ordered_fold) {
    std::ranges::sort(pending_, {}, [](const Accepted& gradient) { return gradient.id.worker; });
  }
  Update& update = history_.emplace_back(Update{.gradients = std::exchange(pending_, {})});
  if (const auto* sum = std::get_if<SumEvent>(&event)) {
    Require(full_.has_value() && full_->step == sum->step, "sums of a round that was not full");
    update.own = full_->sums;
    update.sums = sum->sums;
  }
}

void ShardLedger::RecordValues(const Shard& shard) {
  const Version newest = options_.publish.has_value() ? shard.log()->newest() : shard.version();
  const std::span<const float> values =
      options_.publish.has_value() ? shard.published() : shard.masters();
  if (!values_.try_emplace({generation_, newest}, values.begin(), values.end()).second) return;
  if (newest == shard.version()) unpublished_ = std::nullopt;
  Require(!options_.publish.has_value() || options_.publish->codec.has_value() ||
              newest != shard.version() || std::ranges::equal(values, shard.masters()),
          absl::StrCat("version ", newest.value, " is not published exactly"));
}

void ShardLedger::CheckBound(const Effects& effects, const Shard& shard) {
  Require(shard.frontier() >= frontier_, "the frontier fell");
  frontier_ = shard.frontier();
  for (const ReadAnswer& answer : effects.answers) {
    Require(!shard.next_rule().has_value() || answer.last < shard.next_rule()->from,
            absl::StrCat("step ", answer.last.value, " began before its rule"));
    Require(answer.last <= answer.step + rule_.in_flight,
            absl::StrCat("an answer to the read for step ", answer.step.value, " begins step ",
                         answer.last.value));
    Require(answer.holds_pushes || rule_.slack == kUnboundedSlack ||
                answer.last <= StepsAfter(frontier_, rule_.slack),
            absl::StrCat("step ", answer.last.value, " began at frontier ", frontier_.value));
    if (rule_.slack == kUnboundedSlack) continue;
    Require(answer.step <= StepsAfter(frontier_, rule_.slack),
            absl::StrCat("step ", answer.step.value, " began at frontier ", frontier_.value));
    for (const Accepted& gradient : pending_) {
      Require(gradient.id.step >= frontier_,
              absl::StrCat("step ", gradient.id.step.value, " is missing at frontier ",
                           frontier_.value));
    }
    Require(
        !options_.publish.has_value() || !unpublished_.has_value() || *unpublished_ >= frontier_,
        absl::StrCat("unpublished at frontier ", frontier_.value));
  }
}

void ShardLedger::CheckRecovered(const Shard* shard, LogSequence applied) {
  Require(applied >= recorded_, absl::StrCat("record ", recorded_, " had effects and is lost (the ",
                                             "log ends at record ", applied, ")"));
  if (shard == nullptr) return;
  Require(shard->version().value == history_.size(), "the recovered version is another one");
  Require(shard->frontier() == frontier_, "the recovered frontier is another one");
  Require(shard->rule() == rule_, "the recovered rule is another one");
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
  full_.reset();
  generation_ = generation;
  unpublished_ = std::nullopt;
  frontier_ = shard.frontier();
  rule_ = shard.rule();
}

void ShardLedger::Undo(const Accepted& gradient) {
  accounts_[{gradient.id.worker, gradient.id.incarnation}] -= gradient.applied;
  rolled_back_[gradient.id] = gradient.applied;
}

Mass ShardLedger::FoundOf(WorkerId worker, Incarnation incarnation) const {
  Mass found;
  ForEachAccepted([&](const Accepted& gradient) {
    const GradientId& id = gradient.id;
    if (id.worker == worker && id.incarnation == incarnation) found += gradient.applied;
  });
  return found;
}

bool ShardLedger::IsAccepted(const GradientId& id) const {
  bool found = false;
  ForEachAccepted([&](const Accepted& gradient) { found = found || gradient.id == id; });
  return found;
}

void ShardLedger::CheckReplay(const Shard& shard) {
  const SparseUpdateSpec& sparse = options_.sparse_updates;
  Store store(options_.value_count, options_.planned_examples, *update_->optimizer,
              update_->schedule, sparse, std::pmr::get_default_resource(), options_.tensor_sizes);
  store.Seed(Fp32Payload(seed_));
  for (const Update& update : history_) {
    Accumulator accumulator(options_.value_count, sparse.WantsSparse());
    for (const Accepted& gradient : update.gradients) {
      accumulator.Fold(
          {gradient.id.worker, gradient.examples, gradient.late_examples, gradient.payload});
    }
    if (options_.shares_tensor) {
      Require(store.Measure(accumulator) == update.own, "a replay gives other sums");
      store.ApplyMeasured(accumulator, *update.sums);
    } else {
      store.Apply(accumulator, FactorOf(update));
    }
  }
  Require(std::memcmp(store.masters().data(), shard.masters().data(),
                      options_.value_count * sizeof(float)) == 0,
          "a replay of the accepted pushes gives other parameters");
}

void ShardLedger::Close(const Shard& shard) {
  // A full round waits for ever if a server was lost.
  Require(pending_.empty() || shard.full(), "an accepted gradient is in no update");
  Require(shard.version().value == history_.size(),
          "the version differs from the number of updates");
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
      round.squared_norm += ShardLedger::SquaredNormOfMean(update.gradients);
      const double factor = ledger.FactorOf(update);
      if (round.factor.value_or(factor) != factor) return "the factors differ";
      round.factor = factor;
    }
    // The round of a shard whose server was lost may be closed at the other shards.
    if (ledger.pending_.empty()) continue;
    rounds[ledger.pending_.front().id.step].squared_norm +=
        ShardLedger::SquaredNormOfMean(ledger.pending_);
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

std::string CheckSums(std::span<const ShardLedger* const> ledgers) {
  struct Round {
    SquareSums parts;
    std::optional<SquareSums> sums;  // of the first shard that has closed the round
  };
  std::map<Step, Round> rounds;
  for (const ShardLedger* const ledger : ledgers) {
    for (const ShardLedger::Update& update : ledger->history_) {
      Round& round = rounds[update.gradients.front().id.step];
      round.parts += update.own;
      if (round.sums.value_or(*update.sums) != *update.sums) return "the sums differ";
      round.sums = update.sums;
    }
    // The round of a shard whose server was lost may be closed at the other shards.
    if (!ledger->pending_.empty() && ledger->full_.has_value() &&
        ledger->full_->step == ledger->pending_.front().id.step) {
      rounds[ledger->full_->step].parts += ledger->full_->sums;
    }
  }
  for (const auto& [step, round] : rounds) {
    if (!round.sums.has_value()) continue;
    const auto differs = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::abs(b); };
    if (differs(round.parts.update, round.sums->update) ||
        differs(round.parts.masters, round.sums->masters)) {
      return absl::StrCat("step ", step.value, " has sums of ", round.sums->update, " and ",
                          round.sums->masters, " (expected ", round.parts.update, " and ",
                          round.parts.masters, ")");
    }
  }
  return "";
}

}  // namespace thinwire::sim
