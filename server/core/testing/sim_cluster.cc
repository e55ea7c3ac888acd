#include "server/core/testing/sim_cluster.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr uint64_t kLeaseTicks = 60;
constexpr uint64_t kPatienceTicks = 20000;

// Who has a successor and waits for an answer learns it from his heartbeat.
Judgement FencedHeartbeat(const ToShard& letter) {
  Judgement fenced;
  fenced.worker = letter.worker;
  fenced.incarnation = letter.incarnation;
  fenced.verdict = Verdict::kFenced;
  return fenced;
}

// Readers of masters, of exact deltas, of a codec's; with logs that reach far, hardly and not.
std::optional<PublishOptions> DrawPublish(Dice& dice) {
  if (dice.Percent(20)) return std::nullopt;
  PublishOptions publish;
  if (dice.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kFp8E5m2};
  if (dice.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kTopK, .density = .1};
  if (dice.Percent(50)) publish.log_bytes = dice.Below(60);
  if (dice.Percent(50)) publish.every = static_cast<uint32_t>(dice.Below(5));
  return publish;
}

}  // namespace

SimCluster::SimCluster(const Rule& rule, uint64_t seed)
    : rule_(rule),
      dice_(seed),
      shard_count_(1 + static_cast<uint32_t>(dice_.Below(3))),
      publish_(DrawPublish(dice_)),
      lazy_slots_(dice_.Percent(50)),
      last_{6 + dice_.Below(10)},
      trouble_ticks_(100 + dice_.Below(400)),
      to_shards_(dice_),
      to_workers_(dice_),
      books_(shard_count_, ShardBooks(rule, publish_, lazy_slots_)),
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
    open_at_.push_back(80 + dice_.Below(200));
  }
  for (auto& starts : starts_) starts.push_back(dice_.Percent(80) ? dice_.Below(20) : 400);
  const WireFaults faults = {dice_.Below(25), dice_.Below(25), 1 + dice_.Below(40)};
  to_shards_.SetFaults(faults);
  to_workers_.SetFaults(faults);
}

std::string SimCluster::Run() {
  for (; !Over(); ++now_) {
    if (now_ > trouble_ticks_ + kPatienceTicks) return Stuck();
    if (now_ == trouble_ticks_) EndTrouble();
    if (now_ < trouble_ticks_) MakeTrouble();
    StartDue();
    for (uint32_t i = 0; i < shard_count_; ++i) {
      if (now_ == open_at_[i] && !shards_[i]->open()) ApplyTo(i, OpenEvent{});
    }
    for (const ToShard& letter : to_shards_.Arrived(now_)) Deliver(letter);
    for (const ToWorker& letter : to_workers_.Arrived(now_)) Deliver(letter);
    for (Process& process : processes_) {
      process.client->Tick(
          now_, [this](uint32_t shard, const Event& event) { return ApplyTo(shard, event); },
          to_shards_);
    }
    ExpireLeases();
  }
  return Complaints();
}

// Nobody runs or will, nothing is on its way, and the dead are known to be dead.
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
  plan.compute_ticks = dice_.Percent(20) ? 60 : 6;
  processes_.push_back({std::make_unique<SimClient>(plan, dice_, books_)});
  if (now_ >= trouble_ticks_) processes_.back().client->TrustWire();
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

void SimCluster::MakeTrouble() {
  const uint32_t worker = static_cast<uint32_t>(dice_.Below(rule_.workers));
  if (dice_.Percent(1)) LoseProcess(worker);
  if (dice_.Percent(2)) Expire(static_cast<uint32_t>(dice_.Below(shard_count_)), worker);
}

void SimCluster::EndTrouble() {
  to_shards_.SetFaults({});
  to_workers_.SetFaults({});
  for (Process& process : processes_) process.client->TrustWire();
}

// The process dies, or is only believed dead and goes on beside its successor.
void SimCluster::LoseProcess(uint32_t worker) {
  for (Process& process : processes_) {
    const SimClient& client = *process.client;
    if (client.worker().value != worker || client.incarnation() != incarnations_[worker]) continue;
    if (!client.running() || process.killed) return;
    const bool dies = dice_.Percent(60);
    if (dies) process.client->Die();
    ++counts_.deaths;
    process.killed = true;
    if (!dies || dice_.Percent(80)) starts_[worker].push_back(now_ + 1 + dice_.Below(150));
    return;
  }
}

void SimCluster::Deliver(const ToShard& letter) {
  if (!letter.event.has_value() && letter.incarnation < incarnations_[letter.worker.value]) {
    SendVerdict(letter.shard, FencedHeartbeat(letter));
    return;
  }
  Lease& lease = leases_[letter.shard][letter.worker.value];
  if (letter.incarnation == lease.incarnation) {
    lease.heard = now_;
    if (!letter.event.has_value() && lease.expired) {
      ApplyTo(letter.shard, ReturnEvent{letter.worker, letter.incarnation});
    }
    lease.expired = false;
  }
  if (letter.event.has_value()) ApplyTo(letter.shard, *letter.event);
}

void SimCluster::Deliver(ToWorker letter) {
  // A slow reader's bytes are chosen late.
  if (letter.held.has_value() && dice_.Percent(30)) {
    const auto newest = shards_[letter.shard]->log()->Since(*letter.held);
    if (newest.has_value() && !newest->empty()) letter.deltas = *newest;
  }
  for (Process& process : processes_) {
    const SimClient& client = *process.client;
    const bool meant =
        client.worker() == letter.worker && client.incarnation() == letter.incarnation;
    if (meant) process.client->Hear(letter);
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
  books_[shard].Enter(event, effects, *shards_[shard], *optimizers_[shard]);
  if (effects.judgement.has_value()) {
    if (effects.judgement->verdict == Verdict::kFenced) ++counts_.fenced;
    SendVerdict(shard, *effects.judgement);
  }
  for (const Answer& answer : effects.answers) {
    ToWorker letter;
    letter.shard = shard;
    letter.worker = answer.worker;
    letter.incarnation = answer.incarnation;
    letter.step = answer.step;
    letter.version = shards_[shard]->version();
    if (answer.form.published) {
      letter.held = answer.form.held;
      letter.deltas = shards_[shard]->Deltas(answer.form.held);
      const bool whole = letter.deltas[0]->kind == PublishedDelta::Kind::kFull;
      ++(whole ? counts_.wholes : counts_.deltas);
    }
    to_workers_.Send(now_, letter);
  }
  return effects;
}

void SimCluster::SendVerdict(uint32_t shard, const Judgement& judgement) {
  ToWorker letter;
  letter.shard = shard;
  letter.worker = judgement.worker;
  letter.incarnation = judgement.incarnation;
  letter.judgement = judgement;
  to_workers_.Send(now_, letter);
}

std::string SimCluster::Complaints() {
  std::string complaints;
  for (const Process& process : processes_) {
    if (process.killed || process.client->finished()) continue;
    absl::StrAppend(&complaints, "did not finish: ", process.client->Describe(), "\n");
  }
  for (uint32_t i = 0; i < shard_count_; ++i) {
    books_[i].Close(*shards_[i]);
    counts_.late += books_[i].verdicts(Verdict::kLate);
    counts_.accepted += books_[i].verdicts(Verdict::kAccept);
    counts_.updates += books_[i].update_count();
    for (const std::string& complaint : books_[i].complaints()) {
      absl::StrAppend(&complaints, "shard ", i, ": ", complaint, "\n");
    }
  }
  return complaints;
}

std::string SimCluster::Stuck() const {
  std::ostringstream out;
  out << "stuck at tick " << now_ << ", last step " << last_ << "\n";
  for (const Process& process : processes_) out << process.client->Describe() << "\n";
  for (uint32_t i = 0; i < shard_count_; ++i) {
    out << "shard " << i << " frontier " << shards_[i]->frontier() << "\n";
    for (const Wait& wait : shards_[i]->Waits()) out << "  " << wait << "\n";
  }
  return out.str();
}

}  // namespace thinwire
