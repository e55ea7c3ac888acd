#include "sim/faults.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "config/parts/consistency.h"
#include "sim/draws.h"

namespace thinwire::sim {
namespace {

constexpr uint64_t kNever = uint64_t{1} << 60;  // more file operations than a run has
constexpr absl::Duration kPatience = absl::Seconds(8);

}  // namespace

void FaultCounts::Add(const FaultCounts& other) {
  broken_streams += other.broken_streams;
  cuts += other.cuts;
  long_cuts += other.long_cuts;
  dead_servers += other.dead_servers;
  power_losses += other.power_losses;
  drained_servers += other.drained_servers;
  lost_servers += other.lost_servers;
  gave_up += other.gave_up;
  disk_crashes += other.disk_crashes;
  full_disks += other.full_disks;
  failed_flushes += other.failed_flushes;
  dead_workers += other.dead_workers;
  abandoned_workers += other.abandoned_workers;
  mode_changes += other.mode_changes;
  suspended_servers += other.suspended_servers;
  suspended_workers += other.suspended_workers;
  rivals += other.rivals;
}

std::ostream& operator<<(std::ostream& out, const FaultCounts& counts) {
  return out << counts.broken_streams << " streams broken, " << counts.cuts << " pairs cut, "
             << counts.long_cuts << " for longer than a lease, " << counts.dead_servers
             << " servers ended, " << counts.power_losses << " of them with their power, "
             << counts.drained_servers << " drained, " << counts.lost_servers
             << " lost for good by " << counts.gave_up << " workers, " << counts.disk_crashes
             << " crashes, " << counts.failed_flushes << " failed flushes and " << counts.full_disks
             << " full disks planned, " << counts.dead_workers << " workers ended, "
             << counts.abandoned_workers << " of them for good, " << counts.mode_changes
             << " changes of the mode, " << counts.suspended_servers << " servers and "
             << counts.suspended_workers << " workers suspended, " << counts.rivals
             << " processes with the number of a suspended one";
}

Faults::Faults(Cluster& cluster, const JobSpec& spec, uint64_t seed, const FaultOptions& options)
    : cluster_(cluster), spec_(spec), random_(seed), options_(options), confirmed_(spec.rule) {}

absl::Status Faults::Inject(absl::Duration time) {
  cluster_.RunFor(absl::Milliseconds(500));
  const absl::Duration end = cluster_.time().elapsed() + time;
  while (cluster_.time().elapsed() < end && !cluster_.RunUntilFinished(absl::ZeroDuration())) {
    RETURN_IF_ERROR(InjectOne());
    cluster_.RunFor(absl::Milliseconds(random_.Below(400)));
    TakeReply();
    // No server is started again, so no shard may ever leave the rule.
    if (succeeded_ && spec_.recovery.durability == Durability::kNone) {
      cluster_.ledger().Require(cluster_.ledger().NewestRule() == confirmed_,
                                "a shard has left the rule that the lead has confirmed");
    }
  }
  EndFaults();
  const absl::Duration drained_by = cluster_.time().elapsed() + kPatience;
  while (!draining_.empty() && cluster_.time().elapsed() < drained_by) {
    cluster_.RunFor(absl::Milliseconds(100));
    std::erase_if(draining_, [this](ServerId id) { return cluster_.job(id) == nullptr; });
  }
  for (uint32_t s = 0; s < spec_.server_count; ++s) {
    RETURN_IF_ERROR(StartIfDown(ServerId{s}));
  }
  return absl::OkStatus();
}

void Faults::EndFaults() {
  for (uint32_t s = 0; s < spec_.server_count; ++s) {
    const ServerId server{s};
    for (uint32_t w = 0; w < spec_.rule.max_workers; ++w) {
      cluster_.network().Cut(WorkerId{w}, server, false);
      cluster_.network().CutCalls(WorkerId{w}, server, false);
    }
    cluster_.network().CutFromLead(server, false);
    cluster_.SuspendServer(server, absl::ZeroDuration());
    FaultyFiles& files = cluster_.files(server);
    files.CrashAt(kNever);
    files.FailFileFlushAt(kNever);
    files.SetFreeBytes(kNever);
  }
  for (uint32_t w = 0; w < spec_.rule.max_workers; ++w) {
    cluster_.SuspendWorker(WorkerId{w}, absl::ZeroDuration());
  }
}

absl::Status Faults::InjectOne() {
  const ServerId server{static_cast<uint32_t>(random_.Below(spec_.server_count))};
  const WorkerId worker{static_cast<uint32_t>(random_.Below(spec_.rule.workers))};
  const bool is_durable = spec_.recovery.durability != Durability::kNone;
  if (options_.suspends_processes && random_.Percent(15)) {
    SuspendOne(server, worker);
    return absl::OkStatus();
  }
  if (random_.Percent(4)) {
    CutForLong(worker, server);
    return absl::OkStatus();
  }
  const uint64_t kinds = options_.mode_changes > 0 ? 9 : 7;
  switch (random_.Below(kinds)) {
    case 0:
      ++counts_.broken_streams;
      if (random_.Percent(50)) {
        cluster_.network().Break(worker, server);
      } else {
        cluster_.network().BreakAfterFrame(worker, server);
      }
      return absl::OkStatus();
    case 1:
      Cut(worker, server);
      return absl::OkStatus();
    case 2:
      cluster_.network().CutFromLead(server, random_.Percent(50));
      return absl::OkStatus();
    case 3:
      return is_durable ? KillServer(server) : absl::OkStatus();
    case 4:
      return StartIfDown(server);
    case 5:
      if (!is_durable) return absl::OkStatus();
      HarmDisk(server);
      return absl::OkStatus();
    case 6:
      if (options_.kills_workers) KillWorker(worker);
      return absl::OkStatus();
    case 7:
      cluster_.network().RepeatSetMode(server, absl::Milliseconds(random_.Below(8000)));
      return absl::OkStatus();
    default:
      ChangeMode();
      return absl::OkStatus();
  }
}

void Faults::Cut(WorkerId worker, ServerId server) {
  ++counts_.cuts;
  const bool cut = random_.Percent(50);
  if (random_.Percent(50)) {
    cluster_.network().Cut(worker, server, cut);
  } else {
    cluster_.network().CutCalls(worker, server, cut);
  }
}

// The lease of the worker ends at one server alone. Other faults may reconnect the pair earlier.
void Faults::CutForLong(WorkerId worker, ServerId server) {
  ++counts_.long_cuts;
  cluster_.network().Cut(worker, server, true);
  const absl::Duration time = spec_.lease + absl::Milliseconds(500 + random_.Below(1500));
  cluster_.time().After(time, [&network = cluster_.network(), worker, server] {
    network.Cut(worker, server, false);
  });
}

void Faults::HarmDisk(ServerId server) {
  FaultyFiles& files = cluster_.files(server);
  const uint64_t kind = options_.harms_disks ? random_.Below(3) : 0;
  if (kind == 0) {
    ++counts_.disk_crashes;
    files.CrashAt(1 + random_.Below(30));
  } else if (kind == 1) {
    ++counts_.failed_flushes;
    files.FailFileFlushAt(1 + random_.Below(10));
  } else {
    ++counts_.full_disks;
    files.SetFreeBytes(random_.Below(4000));
  }
}

absl::Status Faults::LoseServer(absl::Duration time) {
  const ServerId server{static_cast<uint32_t>(random_.Below(spec_.server_count))};
  ++counts_.lost_servers;
  cluster_.KillServer(server, /*power_loss=*/true);
  const bool ended = cluster_.RunUntilEnded(time);
  if (!ended) return absl::InternalError("some workers wait for a server that is lost for good");
  const std::string name = absl::StrCat("server ", server.value, " ");
  for (uint32_t w = 0; w < spec_.rule.max_workers; ++w) {
    const VirtualWorker* const worker = cluster_.worker(WorkerId{w});
    if (worker == nullptr || worker->finished()) continue;
    ++counts_.gave_up;
    if (absl::StrContains(worker->failure().message(), name)) continue;
    return absl::InternalError(absl::StrCat(
        "worker ", w, " does not name the lost server: ", worker->failure().ToString()));
  }
  return absl::OkStatus();
}

absl::Status Faults::KillServer(ServerId server) {
  if (random_.Percent(20) && cluster_.job(server) != nullptr) {
    ++counts_.drained_servers;
    cluster_.DrainServer(server);
    draining_.insert(server);
    return absl::OkStatus();
  }
  const bool power_loss = random_.Percent(50);
  if (cluster_.job(server) != nullptr) {
    ++counts_.dead_servers;
    if (power_loss) ++counts_.power_losses;
  }
  cluster_.KillServer(server, power_loss);
  cluster_.files(server).SetFreeBytes(kNever);
  return random_.Percent(50) ? StartIfDown(server) : absl::OkStatus();
}

absl::Status Faults::StartIfDown(ServerId server) {
  if (cluster_.job(server) != nullptr) return absl::OkStatus();
  draining_.erase(server);
  FaultyFiles& files = cluster_.files(server);
  const absl::Status started = cluster_.StartServer(server);
  if (started.ok()) return started;
  // The machine crashed again during the start, a flush failed, or the disk is full.
  const bool is_fault =
      files.crashed() || absl::IsResourceExhausted(started) || absl::IsUnknown(started);
  if (!is_fault) return started;
  files.Restart();
  files.SetFreeBytes(kNever);
  files.FailFileFlushAt(kNever);
  return cluster_.StartServer(server);
}

void Faults::KillWorker(WorkerId worker) {
  if (cluster_.worker(worker) == nullptr || cluster_.worker(worker)->finished()) return;
  ++counts_.dead_workers;
  cluster_.KillWorker(worker);
  if (options_.abandons_workers && spec_.rule.workers > 1 && random_.Percent(8)) {
    ++counts_.abandoned_workers;
    return;
  }
  cluster_.StartWorker(worker);
}

void Faults::SuspendOne(ServerId server, WorkerId worker) {
  const absl::Duration duration = absl::Milliseconds(random_.Below(3000));
  if (random_.Percent(50)) {
    ++counts_.suspended_servers;
    cluster_.SuspendServer(server, duration);
  } else {
    ++counts_.suspended_workers;
    cluster_.SuspendWorker(worker, duration);
    if (!options_.kills_workers || !random_.Percent(50)) return;
    const VirtualWorker* const process = cluster_.worker(worker);
    if (process == nullptr || process->ended()) return;
    ++counts_.rivals;
    cluster_.StartWorker(worker);
  }
}

void Faults::ChangeMode() {
  Job* const lead = cluster_.job(ServerId{0});
  if (lead == nullptr || reply_ != nullptr || counts_.mode_changes >= options_.mode_changes) return;
  SetModeRequest request;
  request.set_job(spec_.name);
  request.set_force(true);
  *request.mutable_consistency() = DrawConsistency(random_, spec_.rule);
  requested_ = RuleOf(request.consistency());
  succeeded_ = false;
  gives_up_ = cluster_.time().elapsed() + kPatience;
  reply_ = std::make_shared<std::optional<absl::Status>>();
  lead->Call(request, [reply = reply_](const absl::StatusOr<SetModeReply>& result) {
    *reply = result.status();
  });
}

void Faults::TakeReply() {
  if (reply_ == nullptr) return;
  const bool lost = reply_.use_count() == 1 || cluster_.time().elapsed() > gives_up_;
  if (!reply_->has_value()) {
    if (!lost) return;
    confirmed_.reset();
    reply_.reset();
    return;
  }
  const absl::Status status = **reply_;
  reply_.reset();
  if (status.ok()) {
    ++counts_.mode_changes;
    confirmed_ = requested_;
    succeeded_ = true;
  } else if (!absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status)) {
    confirmed_.reset();
  }
}

bool Faults::SettleRule(absl::Duration time) {
  const absl::Duration end = cluster_.time().elapsed() + time;
  const auto settled = [this] {
    const std::optional<Rule> newest = cluster_.ledger().NewestRule();
    return reply_ == nullptr && newest.has_value() && confirmed_.value_or(*newest) == *newest;
  };
  while (!settled() && cluster_.time().elapsed() < end) {
    cluster_.RunFor(absl::Milliseconds(100));
    TakeReply();
  }
  return settled();
}

}  // namespace thinwire::sim
