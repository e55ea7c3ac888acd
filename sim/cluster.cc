#include "sim/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/options/job_client_options.h"
#include "common/base/status_macros.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"
#include "server/durable/checkpoint.h"
#include "server/durable/log_format.h"
#include "server/durable/state_folder.h"
#include "server/job/make_job.h"

namespace thinwire::sim {
namespace {

constexpr char kFolder[] = "/state";
const absl::Time kDate = absl::FromUnixSeconds(1'700'000'000);
constexpr absl::Duration kTick = absl::Milliseconds(100);

// Returns the generation of the newest checkpoint; 0 without one.
absl::StatusOr<Generation> GenerationOnDisk(Files& files) {
  const absl::StatusOr<std::string> name = NewestCheckpoint(files, kFolder);
  if (absl::IsNotFound(name.status())) return Generation{};
  RETURN_IF_ERROR(name.status());
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, kFolder, *name));
  return Generation{manifest.generation()};
}

// Returns the step of the newest checkpoint that all servers may have.
std::optional<Step> NewestStep(Files& files) {
  const auto aligned = ListAlignedCheckpoints(files, kFolder);
  if (!aligned.ok() || aligned->empty()) return std::nullopt;
  return aligned->back().step;
}

// Returns the size of the event log; 0 without one.
uint64_t LogBytes(Files& files) {
  uint64_t bytes = 0;
  const auto names = files.List(kFolder);
  if (!names.ok()) return 0;
  for (const std::string& name : *names) {
    if (!ParseSegmentName(name).has_value()) continue;
    const auto segment = files.Read(absl::StrCat(kFolder, "/", name));
    if (segment.ok()) bytes += segment->size();
  }
  return bytes;
}

const char* const kStateNames[] = {"joining", "training", "leaving", "finished", "failed"};

}  // namespace

Cluster::Cluster(JobSpec spec, VirtualTask task, ClusterOptions options)
    : spec_(std::move(spec)),
      task_(std::move(task)),
      options_(std::move(options)),
      partition_(Partition::Make(task_.tensors, spec_.shard_size, spec_.server_count).value()),
      observer_(options_.observer != nullptr ? *options_.observer
                                             : static_cast<ClusterObserver&>(ledger_.emplace(
                                                   spec_, partition_, task_.initial))),
      network_(time_, spec_.rule.max_workers, spec_.server_count, options_.links, options_.costs),
      pushed_(spec_.rule.max_workers),
      workers_(spec_.rule.max_workers) {
  if (options_.trace != nullptr) observer_.Trace([this](const std::string& text) { Trace(text); });
  for (uint32_t s = 0; s < spec_.server_count; ++s) {
    servers_.push_back(std::make_unique<Server>(options_.seed * 1000 + s, time_));
    FaultyFiles& files = servers_.back()->files;
    if (!files.MakeFolder(kFolder).ok() || !files.SyncFolder("/").ok()) std::abort();
  }
}

void Cluster::Trace(const std::string& text) {
  if (options_.trace == nullptr) return;
  *options_.trace << absl::ToInt64Milliseconds(time_.elapsed()) << " " << text << "\n";
}

Cluster::~Cluster() {
  workers_.clear();
  predecessors_.clear();
  for (uint32_t s = 0; s < servers_.size(); ++s) EndJob(ServerId{s});
}

void Cluster::StartAll() {
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    servers_[s]->failure = StartServer(ServerId{s});
  }
  for (uint32_t w = 0; w < spec_.rule.workers; ++w) StartWorker(WorkerId{w});
}

absl::Status Cluster::StartServer(ServerId server) { return StartJob(server, /*in_place=*/false); }

absl::Status Cluster::StartJob(ServerId id, bool in_place) {
  Trace(absl::StrCat("s", id.value, in_place ? " starts again in its process" : " starts"));
  observer_.BeginStart(id);
  const auto log_bytes = [&]() -> uint64_t {
    return options_.trace == nullptr ? 0 : LogBytes(servers_[id.value]->files);
  };
  const uint64_t bytes = log_bytes();
  absl::Status made = MakeJobOf(id, in_place);
  if (!made.ok()) {
    Trace(absl::StrCat("s", id.value, " cannot start: ", made.message()));
    observer_.CancelStart(id);
    return made;
  }
  if (const uint64_t left = log_bytes(); left < bytes) {
    Trace(absl::StrCat("s", id.value, " cuts ", bytes - left, " bytes of its log"));
  }
  const bool by_round = spec_.rule.fold == Fold::kRound;
  const bool continues =
      spec_.recovery.durability == Durability::kCheckpoint && (in_place || !by_round);
  Generation generation;
  if (continues) {
    const std::shared_ptr<const Checkpoint>& snapshot = servers_[id.value]->snapshot;
    if (snapshot != nullptr) {
      generation = snapshot->run.generation;
    } else {
      ASSIGN_OR_RETURN(generation, GenerationOnDisk(servers_[id.value]->files));
    }
  }
  observer_.EndStart(id, continues, generation);
  Server& server = *servers_[id.value];
  server.failure = absl::OkStatus();
  server.job->StartTicking(std::min(kTick, spec_.lease / 10));
  network_.Attach(id, *server.job);
  return absl::OkStatus();
}

absl::Status Cluster::MakeJobOf(ServerId id, bool in_place) {
  Server& server = *servers_[id.value];
  ++starts_;
  ServerSettings settings;
  settings.server = id;
  settings.run = RunId{1000 + starts_};
  settings.token_key = absl::StrCat("key ", starts_);
  settings.epoch = Epoch{starts_};
  settings.observer = &observer_;
  settings.drained = [&server] { server.drained = true; };
  if (spec_.recovery.durability != Durability::kNone) {
    RETURN_IF_ERROR(BreakState(options_.mutant, server.files, kFolder));
    // The machine's clock was set forward or back since the last start.
    const absl::Duration jump = absl::Seconds(SeededRandom(~options_.seed + starts_).Below(7200));
    const absl::Time date = kDate + time_.elapsed() + jump;
    const Generation generation =
        server.snapshot == nullptr ? Generation() : server.snapshot->run.generation;
    ASSIGN_OR_RETURN(settings.epoch, NextEpoch(server.files, kFolder, date, generation));
    settings.durable = DurableOptions{
        .files = &server.files,
        .folder = kFolder,
        .awaits_rollback = !in_place,
        .snapshot = &server.snapshot,
        .failed = [&server](const absl::Status& failure) { server.failure = failure; },
        .log_failed = [&server](const absl::Status&) { server.log_failed = true; },
        .restart = [&server] { server.restart_wanted = true; }};
  }
  std::unique_ptr<Peers> peers;
  if (id == ServerId{0} && spec_.server_count > 1) {
    peers = BreakPeers(options_.mutant, network_.ConnectLead(), confirmed_,
                       [this](ServerId other) { return NewestStep(servers_[other.value]->files); });
  }
  ASSIGN_OR_RETURN(server.job, MakeJob(spec_, std::move(settings), server.process,
                                       JobExecutors{.threads = server.process,
                                                    .background = server.process,
                                                    .shards = server.process,
                                                    .unix_clock = server.process},
                                       std::move(peers)));
  return absl::OkStatus();
}

void Cluster::EndJob(ServerId id) {
  network_.Detach(id);
  observer_.EndServer(id);
  servers_[id.value]->job.reset();
  servers_[id.value]->process.Suspend(absl::ZeroDuration());
  servers_[id.value]->restart_wanted = false;
  servers_[id.value]->drained = false;
  servers_[id.value]->log_failed = false;
}

void Cluster::KillServer(ServerId id, bool power_loss) {
  FaultyFiles& files = servers_[id.value]->files;
  Trace(absl::StrCat("s", id.value, power_loss ? " loses its power" : " is killed"));
  // Nothing that the end of the job does reaches the disk.
  files.Crash();
  EndJob(id);
  servers_[id.value]->snapshot.reset();
  servers_[id.value]->failure = absl::OkStatus();
  if (power_loss) {
    files.Restart();
  } else {
    files.RestartProcess();
  }
}

void Cluster::DrainServer(ServerId server) {
  if (job(server) == nullptr) return;
  Trace(absl::StrCat("s", server.value, " is drained"));
  job(server)->Call(DrainRequest(), [](const absl::StatusOr<DrainReply>&) {});
}

void Cluster::StartWorker(WorkerId worker) {
  ClientSettings settings = {.worker = worker,
                             .planned_examples = task_.planned_examples,
                             .planned_steps = task_.planned_steps,
                             .state_dir = options_.state_dir};
  if (settings.planned_examples == 0 && task_.data.has_value()) {
    settings.planned_examples = task_.data->epochs * task_.data->example_count;
  }
  ClientOptions client = MakeClientOptions(spec_, settings);
  client.config = task_.config;
  if (!task_.fastest.empty()) client.choose.reset();
  Trace(absl::StrCat("w", worker.value, " starts"));
  auto started = std::make_unique<WorkerProcess>(time_);
  WorkerProcess* const process = started.get();
  Network::OnFrame on_frame;  // the laboratory hears of no frames
  if (ledger_.has_value()) {
    on_frame = [this, worker, process](ServerFrame& frame) {
      ledger_->OnFrame(worker, process->worker->incarnation(), frame);
      return BreakFrame(options_.mutant, frame);
    };
  }
  const auto joined = [this, worker](bool came_back, Step first) {
    // A process may restore the residuals of one that still runs.
    for (const auto& [id, older] : predecessors_) {
      if (id == worker) older->worker->KeepResiduals();
    }
    if (came_back) UndoDeparted(first);
  };
  process->worker = std::make_unique<VirtualWorker>(
      task_, partition_, std::move(client), network_.Connect(worker, std::move(on_frame)),
      process->process, pushed_[worker.value], observer_, options_.mutant, joined,
      [this] { worker_failed_ = true; });
  auto& newest = workers_[worker.value];
  if (newest != nullptr && !newest->worker->ended()) {
    predecessors_.emplace_back(worker, std::move(newest));
  }
  newest = std::move(started);
  process->worker->Start();
}

template <typename Action>
void Cluster::ForEachWorker(Action action) const {
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    for (const auto& [id, older] : predecessors_) {
      if (id == WorkerId{w}) action(id, *older->worker);
    }
    if (workers_[w] != nullptr) action(WorkerId{w}, *workers_[w]->worker);
  }
}

void Cluster::UndoDeparted(Step first) {
  ForEachWorker([&](WorkerId id, const VirtualWorker& worker) {
    if (worker.state() != VirtualWorker::State::kFinished) return;
    PushedExamples& pushed = pushed_[id.value];
    pushed.erase(pushed.lower_bound(first), pushed.end());
  });
}

void Cluster::KillWorker(WorkerId worker) {
  Trace(absl::StrCat("w", worker.value, " is killed"));
  workers_[worker.value].reset();
}

void Cluster::SuspendServer(ServerId server, absl::Duration duration) {
  if (job(server) == nullptr) return;
  Trace(absl::StrCat("s", server.value, " is suspended for ", absl::FormatDuration(duration)));
  servers_[server.value]->process.Suspend(duration);
}

void Cluster::SuspendWorker(WorkerId id, absl::Duration duration) {
  if (worker(id) == nullptr) return;
  Trace(absl::StrCat("w", id.value, " is suspended for ", absl::FormatDuration(duration)));
  workers_[id.value]->process.Suspend(duration);
}

void Cluster::ActForProcesses() {
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    Server& server = *servers_[s];
    if (server.job == nullptr || server.process.is_suspended()) continue;
    if (server.files.crashed() || server.log_failed || !server.failure.ok()) {
      absl::Status failure = server.failure;
      if (!failure.ok()) Trace(absl::StrCat("s", s, " gives up: ", failure.message()));
      KillServer(ServerId{s}, /*power_loss=*/true);
      server.failure = std::move(failure);
      continue;
    }
    if (!server.restart_wanted && !server.drained) continue;
    const bool drained = server.drained;
    server.restart_wanted = false;
    const bool stopped = StopJob(server);
    if (drained && !stopped) continue;
    EndJob(ServerId{s});
    if (drained) {
      server.snapshot.reset();
      Trace(absl::StrCat("s", s, " has stopped"));
      server.files.RestartProcess();
      continue;
    }
    absl::Status started = StartJob(ServerId{s}, /*in_place=*/true);
    if (!started.ok()) server.failure = std::move(started);
  }
}

bool Cluster::StopJob(Server& server) {
  bool stopped = false;
  server.job->Stop([&stopped] { stopped = true; });
  while (!stopped && !server.files.crashed() && !server.log_failed) time_.RunNext();
  return stopped;
}

void Cluster::RestartRefusedWorkers() {
  if (!std::exchange(worker_failed_, false) && predecessors_.empty()) return;
  std::erase_if(predecessors_, [](const auto& entry) {
    const VirtualWorker& worker = *entry.second->worker;
    return worker.state() == VirtualWorker::State::kFinished || worker.lost_number();
  });
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w] == nullptr || !workers_[w]->worker->lost_number()) continue;
    const auto older = std::ranges::find(predecessors_.rbegin(), predecessors_.rend(), WorkerId{w},
                                         [](const auto& entry) { return entry.first; });
    if (older == predecessors_.rend()) {
      if (absl::IsAlreadyExists(workers_[w]->worker->failure())) StartWorker(WorkerId{w});
      continue;
    }
    workers_[w] = std::move(older->second);
    predecessors_.erase(std::next(older).base());
  }
}

void Cluster::RunNext() {
  time_.RunNext();
  ActForProcesses();
  RestartRefusedWorkers();
}

bool Cluster::RunUntil(absl::Duration end, const std::function<bool()>& done) {
  while (!done() && time_.next() <= end) RunNext();
  return done();
}

void Cluster::RunFor(absl::Duration time) {
  const absl::Duration end = time_.elapsed() + time;
  time_.At(end, [] {});  // the time advances also without an event
  RunUntil(end, [] { return false; });
}

bool Cluster::RunUntilFinished(absl::Duration time) {
  return RunUntil(time_.elapsed() + time, [this] {
    bool finished = true;
    ForEachWorker([&](WorkerId, const VirtualWorker& worker) { finished &= worker.finished(); });
    return finished;
  });
}

bool Cluster::RunUntilEnded(absl::Duration time) {
  return RunUntil(time_.elapsed() + time, [this] {
    bool ended = true;
    ForEachWorker([&](WorkerId, const VirtualWorker& worker) {
      ended &= worker.ended() || worker.finished();
    });
    return ended;
  });
}

void Cluster::LetWorkersLeave() {
  ForEachWorker([](WorkerId, VirtualWorker& worker) { worker.LeaveWhenTrained(); });
}

std::string Cluster::DescribeWorkers() const {
  std::string text;
  ForEachWorker([&](WorkerId id, const VirtualWorker& worker) {
    absl::StrAppend(&text, "worker ", id.value, "/", worker.incarnation().value, ": ",
                    kStateNames[static_cast<int>(worker.state())], ", step ", worker.step().value,
                    "; ", worker.failure().message(), worker.waiting(), "\n");
  });
  return text;
}

std::map<std::string, std::vector<float>> Cluster::Masters() {
  std::map<std::string, std::vector<float>> masters;
  for (const TensorShape& tensor : task_.tensors) masters[tensor.name].resize(tensor.value_count());
  for (const std::unique_ptr<Server>& server : servers_) {
    bool more = true;
    for (size_t place = 0; more; ++place) {
      std::optional<std::vector<MastersChunk>> chunks;
      server->job->Masters({}, place, [&](const absl::StatusOr<std::vector<MastersChunk>>& reply) {
        chunks = reply.value();
      });
      while (!chunks.has_value()) RunNext();
      for (const MastersChunk& chunk : *chunks) {
        std::memcpy(masters[chunk.tensor()].data() + chunk.offset(), chunk.values().data(),
                    chunk.values().size());
      }
      more = !chunks->empty();
    }
  }
  return masters;
}

}  // namespace thinwire::sim
