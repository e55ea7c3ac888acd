#include "tests/simulation/simulation.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/durable/log_format.h"
#include "server/edge/lead/rollback_plan.h"

namespace thinwire::simulation {
namespace {

constexpr uint64_t kMaxQuietTicks = 20000;
constexpr uint64_t kFollowTicks = 5;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
// File operations and flushes that never happen in one run.
constexpr uint64_t kFar = uint64_t{1} << 40;
constexpr uint64_t kSilenceTicks = 400;

Rule DrawRule(SeededRandom& random, Mode mode) {
  const uint32_t workers = 1 + static_cast<uint32_t>(random.Below(4));
  const uint32_t fold_every = 1 + static_cast<uint32_t>(random.Below(4));
  switch (mode) {
    case Mode::kSync:
      return Rule::Sync(workers, random.Percent(40));
    case Mode::kBackup:
      return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
    case Mode::kSsp:
      return Rule::Ssp(workers, random.Below(4), fold_every);
    case Mode::kAsync:
      break;
  }
  return Rule::Async(workers, fold_every);
}

Job JobOf(SeededRandom& random, const SimulationOptions& options) {
  if (options.job.has_value()) return *options.job;
  const Rule rule = DrawRule(random, options.mode);
  Job job = DrawJob(random, rule, options.durability);
  job.broken = options.broken;
  // Numbers of its own leave the other draws of a seed as they are.
  SeededRandom clipping(~options.seed);
  DrawClipping(clipping, job);
  return job;
}

}  // namespace

SimulationOptions OptionsOf(uint64_t seed) {
  return {.seed = seed,
          .mode = static_cast<Mode>(seed % 4),
          .durability = static_cast<Durability>(seed / 4 % 3)};
}

void SimulationCounts::Add(const SimulationCounts& other) {
  worker_deaths += other.worker_deaths;
  restored_residuals += other.restored_residuals;
  server_deaths += other.server_deaths;
  power_losses += other.power_losses;
  disk_faults += other.disk_faults;
  expired_leases += other.expired_leases;
  rollbacks += other.rollbacks;
  gave_up += other.gave_up;
  accepted += other.accepted;
  late += other.late;
  fenced += other.fenced;
  updates += other.updates;
  clipped += other.clipped;
  unclipped += other.unclipped;
  rule_changes += other.rule_changes;
  undone += other.undone;
  delta_answers += other.delta_answers;
  full_answers += other.full_answers;
}

std::ostream& operator<<(std::ostream& out, const SimulationCounts& counts) {
  return out << counts.worker_deaths << " workers ended, " << counts.restored_residuals
             << " residuals restored, " << counts.server_deaths << " servers ended, "
             << counts.power_losses << " power losses, " << counts.disk_faults << " disk faults, "
             << counts.expired_leases << " leases expired at one shard, " << counts.rollbacks
             << " rollbacks, " << counts.gave_up << " workers gave up, " << counts.accepted
             << " pushes accepted, " << counts.late << " late, " << counts.fenced << " fenced, "
             << counts.undone << " undone, " << counts.updates << " updates, " << counts.clipped
             << " of them clipped, " << counts.unclipped << " with a smaller norm, "
             << counts.rule_changes << " changes of the rule, " << counts.delta_answers
             << " reads answered with deltas, " << counts.full_answers << " with all values";
}

Simulation::Simulation(const SimulationOptions& options)
    : options_(options),
      random_(options.seed),
      job_(JobOf(random_, options)),
      fault_ticks_(150 + random_.Below(450)),
      loses_server_(!options.job.has_value() && job_.durability == Durability::kNone &&
                    random_.Percent(15)),
      operator_(job_, ~options.seed + 1, TraceFunction()),
      to_servers_(random_),
      to_workers_(random_),
      peer_wire_(options.seed,
                 [this](ServerId server) {
                   return Runs(server.value) ? servers_[server.value]->server.get() : nullptr;
                 }),
      workers_(job_.rule.workers),
      cut_until_(job_.rule.workers, std::vector<uint64_t>(job_.server_count)) {
  for (uint32_t i = 0; i < job_.shard_count; ++i) {
    ledgers_.emplace_back(job_, SeedValues(job_.TensorOf(ShardId{i})));
  }
  for (uint32_t i = 0; i < job_.server_count; ++i) {
    servers_.push_back(std::make_unique<ServerMachine>(options.seed * 16 + i));
  }
  for (WorkerMachine& worker : workers_) {
    worker.start_at = random_.Percent(85) ? random_.Below(20) : 300;
  }
  if (options.job.has_value()) {
    for (uint32_t i = 0; i < workers_.size(); ++i) workers_[i].start_at = i;
    return;
  }
  SetFaults({random_.Below(20), random_.Below(20), 1 + random_.Below(25)});
}

void Simulation::SetFaults(const NetworkFaults& faults) {
  to_servers_.SetFaults(faults);
  to_workers_.SetFaults(faults);
  peer_wire_.SetFaults(faults);
}

void Simulation::Trace(const std::string& text) const {
  if (options_.trace != nullptr) *options_.trace << now_ << " " << text << "\n";
}

std::function<void(const std::string&)> Simulation::TraceFunction() const {
  if (options_.trace == nullptr) return nullptr;
  return [this](const std::string& text) { Trace(text); };
}

std::string Simulation::Run() {
  for (; !Over(); ++now_) {
    if (now_ > fault_ticks_ + kMaxQuietTicks) return DescribeStuck();
    if (now_ == fault_ticks_) EndFaults();
    if (now_ < fault_ticks_) InjectFaults();
    StartDue();
    DeliverMessages();
    peer_wire_.Run(now_);
    operator_.Tick(now_, Runs(0) ? servers_[0]->server.get() : nullptr,
                   now_ < fault_ticks_ && !options_.job.has_value());
    TickAll();
    if (job_.durability != Durability::kNone) TakeCheckpoints();
    // No server is started again, so no shard may ever leave the rule.
    if (job_.durability == Durability::kNone && operator_.succeeded()) CheckRule();
    RestartDead();
    const auto is_violated = [](const ShardLedger& ledger) { return !ledger.violations().empty(); };
    if (!violations_.empty() || std::ranges::any_of(ledgers_, is_violated)) return Violations();
  }
  CheckRule();
  if (violations_.empty() && job_.durability == Durability::kLog) {
    RestartAllOnce();
    CheckRule();
  }
  return Violations();
}

bool Simulation::Runs(uint32_t server) const {
  return servers_[server]->server != nullptr && now_ >= servers_[server]->suspended_until;
}

void Simulation::StartServer(uint32_t i, bool rolled_back) {
  ServerMachine& machine = *servers_[i];
  const Server::Shared shared = {
      .job = job_,
      .random = random_,
      .files = machine.files,
      .ledgers = ledgers_,
      .send =
          [this](ToWorker message) {
            if (!IsCut(message.process, message.server)) to_workers_.Send(now_, message);
          },
      .admit = [this](ServerId server, RunId run, Epoch known,
                      const JoinRequest& join) { return Admit(server, run, known, join); },
      .trace = TraceFunction()};
  machine.start_at = kNever;
  machine.server = std::make_unique<Server>(
      shared, ServerId{i}, Epoch{++machine.epoch << 20}, RunId{options_.seed + 1},
      i == 0 ? std::make_unique<SimulatedPeers>(peer_wire_) : nullptr);
  Trace(absl::StrCat("s", i, " starts"));
  const absl::Status started = machine.server->Start(ClockOf(i), rolled_back);
  const bool disk_fault = absl::IsResourceExhausted(started) || absl::IsUnknown(started);
  if (machine.damaged && absl::IsDataLoss(started)) {
    Trace(absl::StrCat("s", i, " refuses to start: ", started.message()));
    machine.server.reset();
    machine.lost = true;
    return;
  }
  if (!started.ok() && !machine.files.crashed() && !disk_fault) {
    violations_.push_back(absl::StrCat("server ", i, " cannot start: ", started.message()));
  }
  const bool is_later = machine.server->checkpoints().generation > Generation{};
  if (is_later && !job_.by_round()) ++counts_.rollbacks;
  StopIfFailed(i, started);
}

void Simulation::StopServer(uint32_t i, bool power_loss) {
  ServerMachine& machine = *servers_[i];
  Trace(absl::StrCat("s", i, power_loss ? " loses its power" : " is killed"));
  machine.server.reset();
  if (power_loss) {
    machine.files.Crash();
    machine.files.Restart();
    ++counts_.power_losses;
  } else {
    machine.files.RestartProcess();
  }
  machine.files.SetFreeBytes(kFar);
  machine.start_at = now_ + 1 + random_.Below(80);
  ++counts_.server_deaths;
}

void Simulation::StopIfFailed(uint32_t i, const absl::Status& status) {
  if (status.ok()) return;
  Trace(absl::StrCat("s", i, " fails: ", status.message()));
  // After a failed flush only a restart of the machine shows which bytes are on the disk.
  StopServer(i, !absl::IsResourceExhausted(status));
}

void Simulation::StartProcess(uint32_t worker) {
  const Worker::Shared shared = {.job = job_,
                                 .random = random_,
                                 .ledgers = ledgers_,
                                 .saved = workers_[worker].saved,
                                 .send =
                                     [this](const ToServer& message) {
                                       if (!IsCut(message.process, message.server))
                                         to_servers_.Send(now_, message);
                                     },
                                 .trace = TraceFunction()};
  // In a story, a server that does not return ends the job.
  const bool waits = job_.durability != Durability::kNone && !options_.job.has_value();
  const Worker::Plan plan = {.process = static_cast<ProcessId>(processes_.size()),
                             .worker = WorkerId{worker},
                             .compute_ticks = random_.Percent(20) ? 60u : 6u,
                             .silence = (waits ? kFar : kSilenceTicks) * kTick};
  processes_.push_back({nullptr});
  processes_.back().worker = std::make_unique<Worker>(shared, plan, now_);
  if (now_ >= fault_ticks_) processes_.back().worker->TrustNetwork();
}

bool Simulation::IsCut(ProcessId process, ServerId server) const {
  const uint32_t worker = processes_[process].worker->worker().value;
  return now_ < cut_until_[worker][server.value];
}

Simulation::Process* Simulation::NewestProcess(uint32_t worker) {
  for (size_t i = processes_.size(); i-- > 0;) {
    if (processes_[i].worker->worker().value != worker) continue;
    return processes_[i].worker->running() ? &processes_[i] : nullptr;
  }
  return nullptr;
}

void Simulation::StartDue() {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    ServerMachine& machine = *servers_[i];
    if (machine.server != nullptr || machine.lost || now_ < machine.start_at) continue;
    // A crash can also happen during a recovery.
    if (now_ < fault_ticks_ && machine.epoch > 0 && random_.Percent(10)) {
      machine.files.CrashAt(1 + random_.Below(12));
    }
    StartServer(i, /*rolled_back=*/false);
  }
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    WorkerMachine& machine = workers_[i];
    if (!machine.start_at.has_value() || now_ < *machine.start_at) continue;
    machine.start_at.reset();
    StartProcess(i);
  }
}

// Plans a new process for each worker whose newest process has ended.
void Simulation::RestartDead() {
  for (Process& process : processes_) {
    if (process.worker->running() || std::exchange(process.seen_dead, true)) continue;
    const uint32_t number = process.worker->worker().value;
    WorkerMachine& machine = workers_[number];
    counts_.restored_residuals += process.worker->restored_count();
    if (absl::StrContains(process.worker->refusal(), "lost its state")) {
      return EndJob(process.worker->refusal());
    }
    if (process.worker->gave_up()) ++counts_.gave_up;
    if (process.worker->finished()) {
      machine.done = true;
      continue;
    }
    ++counts_.worker_deaths;
    if (IsAnyServerLost()) machine.abandoned = true;
    if (machine.done || machine.abandoned || machine.start_at || NewestProcess(number)) continue;
    machine.start_at = now_ + 1 + random_.Below(150);
  }
}

void Simulation::EndJob(const std::string& reason) {
  Trace(absl::StrCat("the job ends: ", reason));
  if (!options_.job.has_value()) violations_.push_back(reason);
  for (const auto& machine : servers_) {
    machine->server.reset();
    machine->lost = true;
  }
  for (Process& process : processes_) process.worker->Die();
  for (WorkerMachine& machine : workers_) {
    machine.abandoned = true;
    machine.start_at.reset();
  }
}

void Simulation::InjectScripted() {
  using Kind = ScriptedFault::Kind;
  for (const ScriptedFault& fault : options_.script) {
    if (fault.tick != now_) continue;
    if (fault.kind == Kind::kKillWorker) {
      if (Process* const process = NewestProcess(fault.number)) process->worker->Die();
      continue;
    }
    const bool killed = fault.kind == Kind::kKillServer || fault.kind == Kind::kDamageRecord;
    StopServer(fault.number, /*power_loss=*/!killed);
    if (fault.kind == Kind::kDamageRecord) DamageRecord(fault.number);
    if (fault.kind == Kind::kLoseFolder) {
      Trace(absl::StrCat("s", fault.number, " loses its folder"));
      FaultyFiles& files = servers_[fault.number]->files;
      files.Rename("state", "lost").IgnoreError();
      files.SyncFolder("/").IgnoreError();
    }
  }
}

// Changes a byte of the first record in the newest segment of the server's log.
void Simulation::DamageRecord(uint32_t i) {
  ServerMachine& machine = *servers_[i];
  std::string segment;
  const std::vector<std::string> names = machine.files.List("state").value();
  for (const std::string& name : names) {
    if (ParseSegmentName(name).has_value()) segment = absl::StrCat("state/", name);
  }
  std::vector<std::byte> bytes = machine.files.Read(segment).value().ToVector();
  bytes.at(kSegmentHeaderBytes + kRecordHeaderBytes) ^= std::byte{1};
  machine.files.SetBytes(segment, std::move(bytes));
  machine.damaged = true;
  Trace(absl::StrCat("s", i, ": a record of ", segment, " is damaged"));
}

absl::StatusOr<Epoch> Simulation::Admit(ServerId server, RunId run, Epoch known,
                                        const JoinRequest& join) {
  if (!Runs(server.value)) return absl::UnavailableError("the server does not run");
  return servers_[server.value]->server->Admit(run, known, join);
}

void Simulation::InjectFaults() {
  if (options_.job.has_value()) return InjectScripted();
  if (random_.Percent(2)) HarmWorker();
  if (random_.Percent(2)) {
    const size_t worker = random_.Below(workers_.size());
    cut_until_[worker][random_.Below(servers_.size())] = now_ + random_.Below(120);
  }
  if (random_.Percent(2)) HarmServer();
  if (random_.Percent(2)) HarmLease();
  if (random_.Percent(2)) HarmDisk();
}

void Simulation::HarmWorker() {
  const auto number = static_cast<uint32_t>(random_.Below(workers_.size()));
  Process* const process = NewestProcess(number);
  if (process == nullptr) return;
  if (random_.Percent(60)) {
    workers_[number].abandoned = workers_.size() > 1 && random_.Percent(8);
    process->worker->Die();
    return;
  }
  process->suspended_until = now_ + random_.Below(200);
  Trace(absl::StrCat("w", number, " is suspended"));
  // A new process may take the number while the old one is suspended.
  if (random_.Percent(50)) workers_[number].start_at = now_ + random_.Below(100);
}

// With checkpoints, a server that ends before its first checkpoint has lost the job.
bool Simulation::MayLoseServers() const {
  if (job_.durability == Durability::kNone) return false;
  return job_.durability == Durability::kLog ||
         std::ranges::all_of(servers_, [](const auto& machine) { return machine->has_state; });
}

void Simulation::HarmServer() {
  const auto i = static_cast<uint32_t>(random_.Below(servers_.size()));
  ServerMachine& machine = *servers_[i];
  if (machine.server == nullptr) return;
  switch (random_.Below(4)) {
    case 0:
      machine.suspended_until = now_ + random_.Below(150);
      Trace(absl::StrCat("s", i, " is suspended"));
      break;
    case 1:
      machine.clock_ahead += random_.Below(300);
      Trace(absl::StrCat("s", i, ": the clock jumps"));
      break;
    default:
      if (MayLoseServers()) StopServer(i, /*power_loss=*/random_.Percent(50));
  }
}

void Simulation::HarmLease() {
  const ShardId shard{static_cast<uint32_t>(random_.Below(job_.shard_count))};
  const WorkerId worker{static_cast<uint32_t>(random_.Below(job_.rule.workers))};
  const uint32_t server = job_.partition->server(shard).value;
  if (Runs(server) && servers_[server]->server->ExpireAt(shard, worker)) ++counts_.expired_leases;
}

void Simulation::HarmDisk() {
  if (!MayLoseServers()) return;
  FaultyFiles& files = servers_[random_.Below(servers_.size())]->files;
  ++counts_.disk_faults;
  switch (random_.Below(3)) {
    case 0:
      return files.CrashAt(1 + random_.Below(30));
    case 1:
      return files.FailFlushAt(1 + random_.Below(10));
    default:
      return files.SetFreeBytes(random_.Below(4000));
  }
}

void Simulation::EndFaults() {
  Trace("the faults end");
  SetFaults({});
  for (auto& cuts : cut_until_) std::ranges::fill(cuts, 0);
  for (auto& machine : servers_) {
    machine->suspended_until = 0;
    machine->files.SetFreeBytes(kFar);
    machine->files.FailFlushAt(kFar);
    if (!machine->files.crashed()) machine->files.CrashAt(kFar);
  }
  for (Process& process : processes_) {
    process.suspended_until = 0;
    process.worker->TrustNetwork();
  }
  if (!loses_server_) return;
  ServerMachine& machine = *servers_[random_.Below(servers_.size())];
  machine.server.reset();
  machine.lost = true;
}

void Simulation::DeliverMessages() {
  for (const ToServer& message : to_servers_.Arrived(now_)) {
    const uint32_t i = message.server.value;
    ServerMachine& machine = *servers_[i];
    if (machine.server == nullptr) continue;
    if (!Runs(i)) {
      to_servers_.Delay(now_, message);
      continue;
    }
    StopIfFailed(i, machine.server->Receive(ClockOf(i), message));
  }
  for (const ToWorker& message : to_workers_.Arrived(now_)) {
    Process& process = processes_[message.process];
    if (now_ < process.suspended_until && process.worker->running()) {
      to_workers_.Delay(now_, message);
    } else {
      process.worker->Receive(now_, message);
    }
  }
}

void Simulation::TickAll() {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (Runs(i)) StopIfFailed(i, servers_[i]->server->Tick(ClockOf(i)));
  }
  for (Process& process : processes_) {
    if (now_ >= process.suspended_until) process.worker->Tick(now_);
  }
}

void Simulation::TakeCheckpoints() {
  const bool aligned = job_.durability == Durability::kCheckpoint && job_.by_round();
  if (aligned && now_ % kFollowTicks == 0) Follow();
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    ServerMachine& machine = *servers_[i];
    if (!aligned && Runs(i) && random_.Percent(machine.has_state ? 2 : 20)) {
      StopIfFailed(i, machine.server->Checkpoint(std::nullopt));
    }
    if (!aligned && machine.server != nullptr) {
      machine.has_state = machine.has_state || machine.server->has_checkpoint();
    }
  }
}

void Simulation::Follow() {
  std::vector<std::optional<ServerCheckpoints>> states;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (!Runs(i)) return;  // the lead is absent, or waits for a server
    states.push_back(servers_[i]->server->checkpoints());
  }
  const absl::StatusOr<std::optional<RollbackOrder>> plan = PlanRollback(states);
  if (!plan.ok()) {
    violations_.push_back(std::string(plan.status().message()));
    return;
  }
  if (!plan->has_value()) {
    servers_[0]->server->Settle();
    const std::optional<Step> common = NewestCommonStep(states);
    for (const auto& machine : servers_) {
      machine->has_state = common.has_value();
      if (common.has_value()) machine->server->Keep(*common);
    }
    return Announce();
  }
  announced_.reset();
  const RollbackOrder& order = **plan;
  RollBack(order.servers.front().value, order.generation, order.step);
}

void Simulation::RollBack(uint32_t i, Generation generation, Step step) {
  ServerMachine& machine = *servers_[i];
  if (job_.broken == BrokenRule::kRollbackToAnotherStep) {
    step = machine.server->checkpoints().steps.back();
  }
  const absl::Status rolled_back = machine.server->RollBack(generation, step);
  StopIfFailed(i, rolled_back);
  if (!rolled_back.ok()) return;
  ++counts_.rollbacks;
  machine.server.reset();
  machine.files.RestartProcess();
  StartServer(i, /*rolled_back=*/true);
}

// A server that has not completed the checkpoint of the last step may miss the next one.
void Simulation::Announce() {
  for (const auto& machine : servers_) {
    if (machine->server->checkpoints().run == RunId{}) return;
  }
  if (now_ < announce_at_) return;
  announce_at_ = now_ + 20 + random_.Below(60);
  // The first checkpoint contains the initial values.
  const bool first = !servers_[0]->has_state;
  announced_ = first ? Step{} : servers_[0]->server->frontier() + 2;
  servers_[0]->server->set_checkpoint_step(announced_);
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    StopIfFailed(i, servers_[i]->server->Checkpoint(announced_));
  }
}

// Returns whether the simulation is over: every worker has left or was abandoned, no process runs,
// and the servers have nothing left to do.
bool Simulation::Over() const {
  const auto ended = [](const WorkerMachine& machine) {
    return (machine.done || machine.abandoned) && !machine.start_at.has_value();
  };
  const auto stopped = [](const Process& process) { return !process.worker->running(); };
  const auto at_rest = [](const auto& machine) {
    return machine->lost || (machine->server != nullptr && machine->server->at_rest());
  };
  // A server that is lost never has its part of a norm, nor a new rule.
  const bool agrees = IsAnyServerLost() || (!WaitsForNorm() && NewestRule().has_value());
  return now_ > fault_ticks_ && agrees && !operator_.waits() &&
         std::ranges::all_of(workers_, ended) && std::ranges::all_of(processes_, stopped) &&
         std::ranges::all_of(servers_, at_rest) && to_servers_.empty() && to_workers_.empty();
}

bool Simulation::IsAnyServerLost() const {
  return std::ranges::any_of(servers_, [](const auto& machine) { return machine->lost; });
}

bool Simulation::WaitsForNorm() const {
  return std::ranges::any_of(servers_, [](const auto& machine) {
    return machine->server != nullptr && machine->server->waits_for_norm();
  });
}

std::optional<Rule> Simulation::NewestRule() const {
  std::optional<Rule> newest;
  for (uint32_t i = 0; i < job_.shard_count; ++i) {
    const auto& server = servers_[job_.partition->server(ShardId{i}).value]->server;
    if (server == nullptr) return std::nullopt;
    const Shard& shard = *server->shard(ShardId{i});
    const Rule& rule = shard.next_rule().has_value() ? shard.next_rule()->rule : shard.rule();
    if (newest.value_or(rule) != rule) return std::nullopt;
    newest = rule;
  }
  return newest;
}

void Simulation::CheckRule() {
  if (IsAnyServerLost()) return;
  if (!operator_.confirmed().has_value() || NewestRule() == operator_.confirmed()) return;
  violations_.push_back("the shards do not follow the rule that the lead has confirmed");
}

// Kills every server and starts it again. With a log, each must have the same state.
void Simulation::RestartAllOnce() {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i]->lost) continue;
    servers_[i]->server.reset();
    servers_[i]->files.Crash();
    servers_[i]->files.Restart();
    StartServer(i, /*rolled_back=*/false);
  }
}

std::string Simulation::Violations() {
  std::string text;
  if (job_.clip_norm > 0) {
    const std::string factors = CheckFactors(job_.clip_norm, ledgers_);
    if (!factors.empty()) violations_.push_back(factors);
  }
  for (const std::string& violation : violations_) absl::StrAppend(&text, violation, "\n");
  for (uint32_t i = 0; i < job_.shard_count; ++i) {
    const ServerMachine& machine = *servers_[job_.partition->server(ShardId{i}).value];
    if (machine.server != nullptr && violations_.empty() && ledgers_[i].violations().empty()) {
      ledgers_[i].Close(*machine.server->shard(ShardId{i}));
    }
    counts_.late += ledgers_[i].verdicts(Verdict::kLate);
    counts_.accepted += ledgers_[i].verdicts(Verdict::kAccept);
    counts_.fenced += ledgers_[i].verdicts(Verdict::kFenced);
    counts_.delta_answers += ledgers_[i].delta_answers();
    counts_.full_answers += ledgers_[i].full_answers();
    counts_.updates += ledgers_[i].update_count();
    counts_.clipped += ledgers_[i].clipped_count();
    counts_.rule_changes += ledgers_[i].rule_changes();
    if (job_.clip_norm > 0) {
      counts_.unclipped += ledgers_[i].update_count() - ledgers_[i].clipped_count();
    }
    counts_.undone += ledgers_[i].undone_count();
    for (const std::string& violation : ledgers_[i].violations()) {
      absl::StrAppend(&text, "shard ", i, ": ", violation, "\n");
    }
  }
  return text;
}

std::string Simulation::DescribeStuck() const {
  std::ostringstream out;
  out << "stuck at tick " << now_ << "\n";
  for (const Process& process : processes_) out << process.worker->Describe() << "\n";
  for (const auto& machine : servers_) {
    out << (machine->server == nullptr ? "a server that does not run" : machine->server->Describe())
        << "\n";
  }
  return out.str();
}

}  // namespace thinwire::simulation
