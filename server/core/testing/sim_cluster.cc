#include "server/core/testing/sim_cluster.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr uint64_t kLeaseTicks = 60;
constexpr uint64_t kMaxQuietTicks = 20000;

// Returns the reply to the heartbeat of a process that a newer process has replaced: the verdict
// kFenced, like the field `fenced` of a real HeartbeatReply.
Judgement FencedHeartbeat(const MessageToShard& message) {
  Judgement fenced;
  fenced.worker = message.worker;
  fenced.incarnation = message.incarnation;
  fenced.verdict = Verdict::kFenced;
  return fenced;
}

// Draws random publish options: deltas that are exact (ulp deltas) or encoded with a codec, and a
// large, small or empty version log. Sometimes returns nullopt, with which shards answer reads with
// masters.
std::optional<PublishOptions> DrawPublish(SeededRandom& random) {
  if (random.Percent(20)) return std::nullopt;
  PublishOptions publish;
  if (random.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kFp8E5m2};
  if (random.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kTopK, .density = .1};
  if (random.Percent(50)) publish.log_bytes = random.Below(60);
  if (random.Percent(50)) publish.every = static_cast<uint32_t>(random.Below(5));
  return publish;
}

}  // namespace

SimCluster::SimCluster(const Rule& rule, uint64_t seed)
    : rule_(rule),
      random_(seed),
      shard_count_(1 + static_cast<uint32_t>(random_.Below(3))),
      publish_(DrawPublish(random_)),
      lazy_slots_(random_.Percent(50)),
      last_{6 + random_.Below(10)},
      fault_ticks_(100 + random_.Below(400)),
      to_shards_(random_),
      to_workers_(random_),
      ledgers_(shard_count_, ShardLedger(rule, publish_, lazy_slots_)),
      leases_(shard_count_, std::vector<Lease>(rule.workers)),
      incarnations_(rule.workers),
      starts_(rule.workers) {
  ShardOptions options;
  options.value_count = kSimValues;
  options.rule = rule;
  options.sparse_updates.lazy_slots = lazy_slots_;
  options.publish = publish_;
  for (uint32_t i = 0; i < shard_count_; ++i) {
    optimizers_.push_back(std::make_unique<RecordingOptimizer>());
    shards_.push_back(std::make_unique<Shard>(options, *optimizers_[i], schedule_));
    open_at_.push_back(80 + random_.Below(200));
  }
  for (auto& starts : starts_) starts.push_back(random_.Percent(80) ? random_.Below(20) : 400);
  const NetworkFaults faults = {random_.Below(25), random_.Below(25), 1 + random_.Below(40)};
  to_shards_.SetFaults(faults);
  to_workers_.SetFaults(faults);
}

std::string SimCluster::Run() {
  for (; !Over(); ++now_) {
    if (now_ > fault_ticks_ + kMaxQuietTicks) return DescribeStuck();
    if (now_ == fault_ticks_) EndFaults();
    if (now_ < fault_ticks_) InjectFaults();
    StartDue();
    for (uint32_t i = 0; i < shard_count_; ++i) {
      if (now_ == open_at_[i] && !shards_[i]->open()) ApplyTo(i, OpenEvent{});
    }
    for (const MessageToShard& message : to_shards_.Arrived(now_)) Deliver(message);
    for (const MessageToWorker& message : to_workers_.Arrived(now_)) Deliver(message);
    for (Process& process : processes_) {
      process.client->Tick(
          now_, [this](uint32_t shard, const Event& event) { return ApplyTo(shard, event); },
          to_shards_);
    }
    ExpireLeases();
  }
  return Violations();
}

// Returns whether the simulation is over: no process runs or will start, no message is in flight,
// and all leases have ended.
bool SimCluster::Over() const {
  const auto no_start = [](const auto& starts) { return starts.empty(); };
  const auto at_rest = [](const Process& process) { return !process.client->running(); };
  const auto ended = [](const Lease& lease) {
    return lease.incarnation.value == 0 || lease.expired;
  };
  return std::all_of(starts_.begin(), starts_.end(), no_start) &&
         std::all_of(processes_.begin(), processes_.end(), at_rest) &&
         std::all_of(leases_.begin(), leases_.end(),
                     [&](const std::vector<Lease>& leases) {
                       return std::all_of(leases.begin(), leases.end(), ended);
                     }) &&
         to_shards_.empty() && to_workers_.empty();
}

void SimCluster::StartProcess(uint32_t worker) {
  SimClientPlan plan;
  plan.by_round = rule_.fold == Fold::kRound;
  plan.reads_deltas = publish_.has_value();
  plan.worker = WorkerId{worker};
  plan.incarnation = ++incarnations_[worker];
  plan.last = last_;
  plan.compute_ticks = random_.Percent(20) ? 60 : 6;
  processes_.push_back({std::make_unique<SimClient>(plan, random_, ledgers_)});
  if (now_ >= fault_ticks_) processes_.back().client->TrustNetwork();
}

void SimCluster::StartDue() {
  for (uint32_t worker = 0; worker < rule_.workers; ++worker) {
    std::vector<uint64_t>& starts = starts_[worker];
    const auto due =
        std::find_if(starts.begin(), starts.end(), [this](uint64_t tick) { return tick <= now_; });
    if (due == starts.end()) continue;
    starts.erase(due);
    StartProcess(worker);
  }
}

void SimCluster::InjectFaults() {
  const uint32_t worker = static_cast<uint32_t>(random_.Below(rule_.workers));
  if (random_.Percent(1)) LoseProcess(worker);
  if (random_.Percent(2)) Expire(static_cast<uint32_t>(random_.Below(shard_count_)), worker);
}

void SimCluster::EndFaults() {
  to_shards_.SetFaults({});
  to_workers_.SetFaults({});
  for (Process& process : processes_) process.client->TrustNetwork();
}

// Ends the worker's process, or starts a newer process of the worker while the old one continues,
// as after a wrong report of its death.
void SimCluster::LoseProcess(uint32_t worker) {
  for (Process& process : processes_) {
    const SimClient& client = *process.client;
    if (client.worker().value != worker || client.incarnation() != incarnations_[worker]) continue;
    if (!client.running() || process.killed) return;
    const bool dies = random_.Percent(60);
    if (dies) process.client->Die();
    ++counts_.deaths;
    process.killed = true;
    if (!dies || random_.Percent(80)) starts_[worker].push_back(now_ + 1 + random_.Below(150));
    return;
  }
}

void SimCluster::Deliver(const MessageToShard& message) {
  if (!message.event.has_value() && message.incarnation < incarnations_[message.worker.value]) {
    SendVerdict(message.shard, FencedHeartbeat(message));
    return;
  }
  Lease& lease = leases_[message.shard][message.worker.value];
  if (message.incarnation == lease.incarnation) {
    lease.heard = now_;
    if (!message.event.has_value() && lease.expired) {
      ApplyTo(message.shard, ReturnEvent{message.worker, message.incarnation});
    }
    lease.expired = false;
  }
  if (message.event.has_value()) ApplyTo(message.shard, *message.event);
}

void SimCluster::Deliver(MessageToWorker message) {
  // A server chooses the deltas of an answer when it writes the message, so a slow reader may
  // receive newer deltas.
  if (message.held.has_value() && random_.Percent(30)) {
    const auto newest = shards_[message.shard]->log()->Since(*message.held);
    if (newest.has_value() && !newest->empty()) message.deltas = *newest;
  }
  for (Process& process : processes_) {
    const SimClient& client = *process.client;
    const bool meant =
        client.worker() == message.worker && client.incarnation() == message.incarnation;
    if (meant) process.client->Receive(message);
  }
}

void SimCluster::ExpireLeases() {
  for (uint32_t shard = 0; shard < shard_count_; ++shard) {
    for (uint32_t worker = 0; worker < rule_.workers; ++worker) {
      const Lease& lease = leases_[shard][worker];
      if (!lease.expired && now_ > lease.heard + kLeaseTicks) Expire(shard, worker);
    }
  }
}

void SimCluster::Expire(uint32_t shard, uint32_t worker) {
  Lease& lease = leases_[shard][worker];
  if (lease.incarnation.value == 0) return;
  lease.expired = true;
  ++counts_.expirations;
  ApplyTo(shard, ExpireEvent{WorkerId{worker}, lease.incarnation});
}

Effects SimCluster::ApplyTo(uint32_t shard, const Event& event) {
  if (const auto* join = std::get_if<JoinEvent>(&event)) {
    Lease& lease = leases_[shard][join->worker.value];
    if (join->incarnation > lease.incarnation) lease = {join->incarnation, now_, false};
  }
  if (const auto* leave = std::get_if<LeaveEvent>(&event)) {
    Lease& lease = leases_[shard][leave->worker.value];
    if (leave->incarnation == lease.incarnation) lease.incarnation = Incarnation{0};
  }
  const Effects effects = shards_[shard]->Apply(event);
  ledgers_[shard].Record(event, effects, *shards_[shard], *optimizers_[shard]);
  if (effects.judgement.has_value()) {
    if (effects.judgement->verdict == Verdict::kFenced) ++counts_.fenced;
    SendVerdict(shard, *effects.judgement);
  }
  for (const ReadAnswer& answer : effects.answers) {
    MessageToWorker message;
    message.shard = shard;
    message.worker = answer.worker;
    message.incarnation = answer.incarnation;
    message.step = answer.step;
    message.version = shards_[shard]->version();
    if (answer.form.published) {
      message.held = answer.form.held;
      message.deltas = shards_[shard]->Deltas(answer.form.held);
      const bool whole = message.deltas[0]->kind == PublishedDelta::Kind::kFull;
      ++(whole ? counts_.full_answers : counts_.delta_answers);
    }
    to_workers_.Send(now_, message);
  }
  return effects;
}

void SimCluster::SendVerdict(uint32_t shard, const Judgement& judgement) {
  MessageToWorker message;
  message.shard = shard;
  message.worker = judgement.worker;
  message.incarnation = judgement.incarnation;
  message.judgement = judgement;
  to_workers_.Send(now_, message);
}

std::string SimCluster::Violations() {
  std::string violations;
  for (const Process& process : processes_) {
    if (process.killed || process.client->finished()) continue;
    absl::StrAppend(&violations, "did not finish: ", process.client->Describe(), "\n");
  }
  for (uint32_t i = 0; i < shard_count_; ++i) {
    ledgers_[i].Close(*shards_[i]);
    counts_.late += ledgers_[i].verdicts(Verdict::kLate);
    counts_.accepted += ledgers_[i].verdicts(Verdict::kAccept);
    counts_.updates += ledgers_[i].update_count();
    for (const std::string& violation : ledgers_[i].violations()) {
      absl::StrAppend(&violations, "shard ", i, ": ", violation, "\n");
    }
  }
  return violations;
}

std::string SimCluster::DescribeStuck() const {
  std::ostringstream out;
  out << "stuck at tick " << now_ << ", last step " << last_ << "\n";
  for (const Process& process : processes_) out << process.client->Describe() << "\n";
  for (uint32_t i = 0; i < shard_count_; ++i) {
    out << "shard " << i << " frontier " << shards_[i]->frontier() << "\n";
    for (const BlockedRead& wait : shards_[i]->BlockedReads()) out << "  " << wait << "\n";
  }
  return out.str();
}

}  // namespace thinwire
