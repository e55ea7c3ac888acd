#include "sim/cluster_ledger.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "server/shards/shard_options.h"

namespace thinwire::sim {
namespace {

// The largest difference of masses if the push codec rounds to values that are no small binary
// fractions.
constexpr double kInexactTolerance = 0.5;

double ToleranceOf(const JobSpec& spec) {
  switch (spec.push.codec.id) {
    case CodecId::kFp32:
    case CodecId::kBf16:
    case CodecId::kTopK:
      return 0;
    default:
      return kInexactTolerance;
  }
}

double Sum(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

Mass MassOf(const client::ShardResidualsView& residual) {
  return {Sum(residual.residual), residual.late_examples};
}

}  // namespace

void LedgerCounts::Add(const LedgerCounts& other) {
  accepted += other.accepted;
  late += other.late;
  fenced += other.fenced;
  updates += other.updates;
  clipped += other.clipped;
  shared += other.shared;
  undone += other.undone;
  rule_changes += other.rule_changes;
  delta_answers += other.delta_answers;
  full_answers += other.full_answers;
  split_leases += other.split_leases;
  restored_residuals += other.restored_residuals;
  codecs = std::max(codecs, other.codecs);
  checked_masses += other.checked_masses;
  checked_replicas += other.checked_replicas;
}

std::ostream& operator<<(std::ostream& out, const LedgerCounts& counts) {
  return out << counts.accepted << " pushes accepted, " << counts.late << " late, " << counts.fenced
             << " fenced, " << counts.undone << " undone, " << counts.updates << " updates, "
             << counts.clipped << " of them clipped, " << counts.shared << " of shared tensors, "
             << counts.rule_changes << " changes of the rule, " << counts.delta_answers
             << " deltas, " << counts.full_answers << " whole parameters, " << counts.split_leases
             << " leases ended at one server alone, " << counts.restored_residuals
             << " residuals restored, " << counts.checked_masses << " masses and "
             << counts.checked_replicas << " replicas checked";
}

ClusterLedger::ClusterLedger(const JobSpec& spec, const Partition& partition,
                             std::span<const std::vector<float>> initial)
    : partition_(partition),
      clip_norm_(spec.clip_norm),
      logs_(spec.recovery.durability == Durability::kLog),
      updates_(MakeGroupUpdates(spec.AllGroups(), spec.schedule).value()),
      hosts_(partition.shard_count()) {
  const ShardOptions options = {.rule = spec.rule,
                                .sparse_updates = spec.sparse_updates,
                                .staleness = spec.staleness,
                                .publish = spec.publish,
                                .clip_norm = spec.clip_norm};
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    ledgers_.emplace_back(
        OptionsOf(partition, shard, options), updates_[partition.group(shard)],
        Gather(shard, [&](uint32_t tensor) { return std::span(initial[tensor]); }),
        ToleranceOf(spec));
  }
}

template <typename TensorOf>
std::vector<float> ClusterLedger::Gather(ShardId shard, TensorOf tensor_of) const {
  std::vector<float> values;
  for (const Segment& segment : partition_.segments(shard)) {
    const std::span<const float> part =
        tensor_of(segment.tensor).subspan(segment.offset, segment.count);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

void ClusterLedger::BeginStart(ServerId server) {
  before_ = ledgers_;
  EndServer(server);
}

void ClusterLedger::EndStart(ServerId server, bool continues, Generation generation) {
  for (const ShardId shard : partition_.ShardsOf(server)) {
    const Host& host = hosts_[shard.value];
    ShardLedger& ledger = ledgers_[shard.value];
    if (logs_) ledger.CheckRecovered(host.shard, host.applied);
    if (continues && host.restored) ledger.RollBack(*host.shard, generation);
  }
  before_.clear();
  TellState(server);
}

void ClusterLedger::TellState(ServerId server) const {
  for (const ShardId shard : partition_.ShardsOf(server)) {
    const Host& host = hosts_[shard.value];
    if (host.shard == nullptr) continue;
    Tell(absl::StrCat(
        "s", server.value, " has version ", host.shard->version().value, " of its shard ",
        shard.value, host.restored ? ", from a checkpoint" : "",
        host.replayed == 0 ? "" : absl::StrCat(", after ", host.replayed, " records")));
  }
}

void ClusterLedger::CancelStart(ServerId server) {
  // A process that cannot finish the recovery sends no effect of the replayed events.
  for (const ShardId shard : partition_.ShardsOf(server)) {
    ledgers_[shard.value] = before_[shard.value];
  }
  before_.clear();
  EndServer(server);
}

void ClusterLedger::EndServer(ServerId server) {
  for (auto* const servers_of : {&live_, &expired_}) {
    for (auto& [process, servers] : *servers_of) servers.erase(server);
  }
  for (const ShardId shard : partition_.ShardsOf(server)) hosts_[shard.value] = {};
}

void ClusterLedger::OnApplied(ShardId id, const Event& event, const Effects& effects,
                              const Shard& shard, LogSequence sequence) {
  Host& host = hosts_[id.value];
  host.shard = &shard;
  host.applied = std::max(host.applied, sequence);
  if (!before_.empty()) ++host.replayed;
  ShardLedger& ledger = ledgers_[id.value];
  if (sequence > 0 && sequence <= ledger.recorded()) return;
  if (trace_ != nullptr) {
    std::ostringstream line;
    line << "s" << partition_.server(id) << " shard " << id << ": " << event << " -> " << effects;
    trace_(line.str());
  }
  ledger.Record(event, effects, shard, sequence);
  if (const auto* join = std::get_if<JoinEvent>(&event)) {
    joined_[{join->worker, join->incarnation, id}] = shard.next(join->worker);
  }
  FollowLease(partition_.server(id), event);
}

void ClusterLedger::FollowLease(ServerId server, const Event& event) {
  if (const auto* join = std::get_if<JoinEvent>(&event)) {
    live_[{join->worker, join->incarnation}].insert(server);
  } else if (const auto* back = std::get_if<ReturnEvent>(&event)) {
    const std::pair process(back->worker, back->incarnation);
    std::set<ServerId>& servers = live_[process];
    // The process is alive, and another server has heard it all the time.
    if (expired_[process].erase(server) > 0 && !servers.empty()) ++split_leases_;
    servers.insert(server);
  } else if (const auto* leave = std::get_if<LeaveEvent>(&event)) {
    live_[{leave->worker, leave->incarnation}].erase(server);
  } else if (const auto* expire = std::get_if<ExpireEvent>(&event)) {
    const std::pair process(expire->worker, expire->incarnation);
    live_[process].erase(server);
    expired_[process].insert(server);
  }
}

void ClusterLedger::OnRestored(ShardId id, const Shard& shard, LogSequence applied) {
  hosts_[id.value] = {.shard = &shard, .restored = true, .applied = applied};
}

void ClusterLedger::Begin(WorkerId worker, Incarnation incarnation,
                          std::span<const client::ShardResidualsView> residuals) {
  for (uint32_t s = 0; s < ledgers_.size(); ++s) {
    ledgers_[s].Begin(worker, incarnation, MassOf(residuals[s]));
    CheckRestored(worker, incarnation, ShardId{s}, residuals[s].residual);
  }
}

void ClusterLedger::Keep(WorkerId worker, Incarnation incarnation, std::optional<Step> first,
                         Step last, std::span<const client::ShardResidualsView> residuals) {
  for (uint32_t s = 0; s < ledgers_.size(); ++s) {
    const ShardId shard{s};
    for (Step step = first.value_or(begun_[{worker, incarnation, shard}]); step <= last; ++step) {
      kept_[{worker, shard, step}].emplace_back(residuals[s].residual.begin(),
                                                residuals[s].residual.end());
    }
  }
}

void ClusterLedger::CheckRestored(WorkerId worker, Incarnation incarnation, ShardId shard,
                                  std::span<const float> residual) {
  const Host& host = hosts_[shard.value];
  if (host.shard == nullptr) return;
  // The server may have lost steps since its reply to the Join, by which the process has decided. In
  // ssp and async it goes on alone, as if it had lost them later.
  const auto joined = joined_.find({worker, incarnation, shard});
  const Step next = joined == joined_.end() ? host.shard->next(worker) : joined->second;
  begun_[{worker, incarnation, shard}] = next;
  if (std::ranges::all_of(residual, [](float value) { return value == 0; })) return;
  const auto kept = kept_.find({worker, shard, next});
  const bool belongs =
      kept != kept_.end() && std::ranges::any_of(kept->second, [&](const auto& one) {
        return std::ranges::equal(one, residual);
      });
  ledgers_[shard.value].Require(
      belongs, absl::StrCat("worker ", worker.value,
                            " has restored residuals that do not belong to step ", next.value));
  ++restored_residuals_;
}

void ClusterLedger::OnFrame(WorkerId worker, Incarnation incarnation, const ServerFrame& frame) {
  for (const VerdictEntry& verdict : frame.verdicts) {
    ledgers_[verdict.shard.value].CheckVerdict({worker, incarnation, verdict.step},
                                               static_cast<Verdict>(verdict.kind));
  }
  for (const ParametersEntry& entry : frame.parameters) {
    delivered_[{worker, incarnation, entry.shard, entry.version}] = frame.generation;
    ++(entry.kind == 0 ? full_answers_ : delta_answers_);
  }
}

void ClusterLedger::AddProduced(WorkerId worker, Incarnation incarnation,
                                std::span<const std::vector<float>> gradient, uint32_t examples) {
  for (uint32_t s = 0; s < ledgers_.size(); ++s) {
    const std::vector<float> values =
        Gather(ShardId{s}, [&](uint32_t tensor) { return std::span(gradient[tensor]); });
    ledgers_[s].AddProduced(worker, incarnation, {Sum(values), examples});
  }
}

void ClusterLedger::Check(WorkerId worker, Incarnation incarnation,
                          std::span<const client::ShardResidualsView> residuals,
                          uint64_t lost_returns, client::Replica* replica) {
  uint64_t& known = lost_returns_[{worker, incarnation}];
  uint64_t lost = lost_returns - std::exchange(known, lost_returns);
  for (uint32_t s = 0; s < ledgers_.size(); ++s) {
    const ShardId shard{s};
    if (!residuals.empty()) {
      const Mass residual = MassOf(residuals[s]);
      // The shard of a lost return is not known, but each one loses the values of one shard.
      if (lost > 0 && !ledgers_[s].HasMass(worker, incarnation, residual)) {
        --lost;
        ledgers_[s].Begin(worker, incarnation, residual);
      }
      ledgers_[s].CheckMass(worker, incarnation, residual);
    }
    // A worker that has its parameters may compute although the server has gone on alone since.
    if (replica == nullptr || !replica->holds(shard)) continue;
    const Version version = replica->held_version(shard);
    const auto delivered = delivered_.find({worker, incarnation, shard, version});
    if (delivered == delivered_.end()) {
      ledgers_[s].Require(
          false, absl::StrCat("a replica has version ", version.value, ", which has not arrived"));
      continue;
    }
    ledgers_[s].CheckReplica(delivered->second, version,
                             Gather(shard, [&](uint32_t tensor) -> std::span<float> {
                               return replica->tensor(tensor);
                             }));
  }
}

std::optional<Rule> ClusterLedger::NewestRule() const {
  std::optional<Rule> newest;
  for (const Host& host : hosts_) {
    if (host.shard == nullptr) return std::nullopt;
    const auto& next = host.shard->next_rule();
    const Rule& rule = next.has_value() ? next->rule : host.shard->rule();
    if (newest.value_or(rule) != rule) return std::nullopt;
    newest = rule;
  }
  return newest;
}

void ClusterLedger::Require(bool holds, const std::string& claim) {
  if (!holds) violations_.push_back(claim);
}

bool ClusterLedger::violated() const {
  return !violations_.empty() || std::ranges::any_of(ledgers_, [](const ShardLedger& ledger) {
    return !ledger.violations().empty();
  });
}

std::string ClusterLedger::Close() {
  if (clip_norm_ > 0) {
    const std::string factors = CheckFactors(clip_norm_, ledgers_);
    Require(factors.empty(), factors);
  }
  for (uint32_t t = 0; t < partition_.tensors().size(); ++t) {
    std::vector<const ShardLedger*> sharing;
    for (const ShardId shard : partition_.ShardsOfTensor(t)) {
      if (partition_.SharesTensor(shard)) sharing.push_back(&ledgers_[shard.value]);
    }
    const std::string sums = CheckSums(sharing);
    Require(sums.empty(), sums);
  }
  // After a violation, the final checks would only repeat it.
  const bool checks = !violated();
  std::string text;
  for (const std::string& violation : violations_) absl::StrAppend(&text, violation, "\n");
  for (size_t s = 0; s < ledgers_.size(); ++s) {
    if (checks && hosts_[s].shard != nullptr) ledgers_[s].Close(*hosts_[s].shard);
    for (const std::string& violation : ledgers_[s].violations()) {
      absl::StrAppend(&text, "shard ", s, ": ", violation, "\n");
    }
  }
  return text;
}

LedgerCounts ClusterLedger::counts() const {
  LedgerCounts counts{.delta_answers = delta_answers_,
                      .full_answers = full_answers_,
                      .split_leases = split_leases_,
                      .restored_residuals = restored_residuals_};
  for (const ShardLedger& ledger : ledgers_) {
    counts.accepted += ledger.verdicts(Verdict::kAccept);
    counts.late += ledger.verdicts(Verdict::kLate);
    counts.fenced += ledger.verdicts(Verdict::kFenced);
    counts.updates += ledger.update_count();
    counts.clipped += ledger.clipped_count();
    counts.shared += ledger.shared_count();
    counts.undone += ledger.undone_count();
    counts.rule_changes += ledger.rule_changes();
    counts.codecs = std::max<uint64_t>(counts.codecs, ledger.codec_count());
    counts.checked_masses += ledger.checked_masses();
    counts.checked_replicas += ledger.checked_replicas();
  }
  return counts;
}

}  // namespace thinwire::sim
