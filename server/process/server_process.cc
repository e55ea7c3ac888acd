#include "server/process/server_process.h"

#include <glog/logging.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/memory/available_memory.h"
#include "common/memory/memory_trimmer.h"
#include "common/time/bandwidth_limit.h"
#include "common/time/stop_limit.h"
#include "common/time/trace.h"
#include "common/time/watchdog.h"
#include "common/tls/credentials_watch.h"
#include "common/tls/worker_token.h"
#include "server/admin/job_watch.h"
#include "server/admin/remote_status.h"
#include "server/admin/server_admin.h"
#include "server/durable/files.h"
#include "server/durable/state_folder.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/process/server_setup.h"
#include "server/process/stop_requests.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/peers.h"
#include "server/protocols/relay/round_relay.h"
#include "server/rpc/grpc_peers.h"
#include "server/rpc/listener.h"
#include "server/site/site_relay.h"

namespace thinwire {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(5);
// Workers join again after a restart in place, so their calls may be cut off.
constexpr absl::Duration kRestartGrace = absl::Milliseconds(100);
// The system may need this long to release the port of the stopped listener.
constexpr absl::Duration kPortPatience = absl::Seconds(5);
// At the end, a server waits this long for its disk and, after the grace, for calls. The disk may
// be slow, and a last checkpoint large.
constexpr absl::Duration kDiskLimit = absl::Minutes(10);
constexpr absl::Duration kCallLimit = absl::Seconds(15);

// Raises the limit on open files to the largest value that this process may set. Each connection is
// an open file, and gRPC 1.51 accepts no connection any more once an accept has failed.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    PLOG(WARNING) << "cannot raise the limit on open files";
}

RunId RandomRun() {
  std::random_device random;
  uint64_t run = 0;
  while (run == 0) run = uint64_t{random()} << 32 | random();
  return RunId{run};
}

// The other servers, whose status the lead's admin page shows too.
using RemoteStatuses = std::vector<std::unique_ptr<RemoteStatus>>;

class ServerProcess {
 public:
  ServerProcess(ServerSetup setup, Clock& clock, Clock& unix_clock, HugePageArena& memory)
      : setup_(std::move(setup)),
        clock_(clock),
        unix_clock_(unix_clock),
        memory_(memory),
        requests_(setup_.flags.replaceable ? ExitCode::kPreempted : ExitCode::kOk),
        threads_(setup_.flags.threads),
        address_(setup_.listen) {}

  // Opens what lasts as long as the process: trace, admin page and state.
  absl::Status Open();
  // Serves the job until the process ends in order, and returns the exit code. Errors: the job
  // cannot be made or served, or the trace cannot be written.
  absl::StatusOr<ExitCode> Serve();

 private:
  // Makes the job and serves it until a request. Returns whether it must be made anew.
  absl::StatusOr<bool> ServeOnce(bool first);
  // Waits up to GRACE for the current calls of the listener. Unless RESTART and all have ended, stops
  // the listener.
  void EndCalls(bool restart, absl::Duration grace);
  // Makes the job, which recovers its state. RELAY: see JobOptions.
  absl::StatusOr<std::unique_ptr<Job>> MakeOnce(RoundRelay* relay);
  // Returns the relay of the aggregator, which asks the job that *JOB points to then.
  std::unique_ptr<SiteRelay> MakeRelay(const std::unique_ptr<Job>* job);
  // Starts to serve JOB. If this is not the FIRST listener of the process, waits for the port of
  // the last one.
  absl::StatusOr<std::unique_ptr<Listener>> StartListener(Job& job, bool first);
  // Returns the sources of the admin page: this server, and at the lead all servers. Fills in
  // REMOTES, which must outlive the sources.
  std::vector<StatusSource> StatusSources(Job& job, RemoteStatuses& remotes);
  bool leads() const { return setup_.server == ServerId{0}; }

  const ServerSetup setup_;
  Clock& clock_;
  Clock& unix_clock_;
  HugePageArena& memory_;
  const MemoryTrimmer trimmer_;
  StopRequests requests_;
  JobThreads threads_;
  std::optional<CredentialsLog> credentials_log_;
  std::optional<Tracer> tracer_;
  std::unique_ptr<ServerAdmin> admin_;
  PosixFiles files_;
  std::optional<StateFolder> folder_;
  std::optional<DurableOptions> durable_;
  std::shared_ptr<const Checkpoint> snapshot_;  // see DurableOptions
  uint64_t memory_budget_ = 0;
  std::string address_;                 // the one to listen on; after the first start with its port
  std::unique_ptr<Listener> listener_;  // null: the next job needs a new one
  std::optional<Watchdog> watchdog_;
};

absl::Status ServerProcess::Open() {
  const ServerFlags& flags = setup_.flags;
  credentials_log_.emplace(flags.connection.credentials, threads_.executors().threads, unix_clock_);
  if (!flags.trace.empty()) {
    if (const absl::Status status = CheckReplaceable(flags.trace); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
    }
    tracer_.emplace(absl::StrCat("server ", setup_.server.value), unix_clock_);
  }
  if (!flags.admin.empty()) {
    ASSIGN_OR_RETURN(
        admin_, ServerAdmin::Start(flags.admin, setup_.spec.name, *credentials_log_, setup_.server,
                                   clock_, flags.bandwidth.price_per_gb));
    LOG(INFO) << "admin " << admin_->address();
  }
  if (!flags.state_dir.empty()) {
    ASSIGN_OR_RETURN(folder_, OpenStateFolder(files_, flags.state_dir, setup_.server));
    durable_ = {
        .files = &files_,
        .folder = folder_->path,
        .snapshot = &snapshot_,
        .failed =
            [this](const absl::Status& failure) { requests_.Fail(failure, ExitCodeOf(failure)); },
        .log_failed =
            [this](const absl::Status& failure) { requests_.Fail(failure, ExitCode::kIo); },
        .restart = [this] { requests_.Restart(); }};
  }
  memory_budget_ = flags.memory_budget != 0 ? flags.memory_budget : AvailableMemory();
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> ServerProcess::Serve() {
  for (bool first = true;; first = false) {
    ASSIGN_OR_RETURN(const bool restart, ServeOnce(first));
    if (restart) continue;
    if (tracer_.has_value()) RETURN_IF_ERROR(tracer_->Write(setup_.flags.trace));
    if (!requests_.failure().ok()) {
      std::cerr << "server: " << requests_.failure().message() << std::endl;
    }
    return requests_.code();
  }
}

absl::StatusOr<bool> ServerProcess::ServeOnce(bool first) {
  std::optional<StopLimit> limit;  // destroyed after the job, which writes to the disk
  std::unique_ptr<Job> job;
  // The job calls the relay until its end, and the relay does not call the job after Stop().
  const std::unique_ptr<SiteRelay> relay = setup_.upper.has_value() ? MakeRelay(&job) : nullptr;
  const absl::Cleanup end = [&] {
    if (relay != nullptr) relay->Stop();
    job.reset();
  };
  ASSIGN_OR_RETURN(job, MakeOnce(relay.get()));
  if (listener_ != nullptr) {
    listener_->Resume(*job);
  } else {
    ASSIGN_OR_RETURN(listener_, StartListener(*job, first));
  }
  address_ = listener_->address();
  job->StartTicking(std::min(absl::Milliseconds(100), setup_.spec.lease / 10));
  job->Tick([] {});  // now: the workers wait for a lead that goes back
  LOG(INFO) << "server " << setup_.server.value << " of " << setup_.spec.server_count << ", epoch "
            << job->epoch() << ", job " << setup_.spec;
  RemoteStatuses remotes;
  if (admin_ != nullptr) admin_->Show(StatusSources(*job, remotes));
  if (first) {
    std::cout << "listening " << address_ << std::endl;
    sd_notify(/*unset_environment=*/0,
              absl::StrCat("READY=1\nSTATUS=listening ", address_).c_str());
  }
  watchdog_.emplace([&job](Watchdog::Alive alive) { job->Tick(std::move(alive)); });

  const bool restart = requests_.WaitForRestart();
  if (restart) {
    listener_->Suspend();  // before the job ends its streams, which the workers open again at once
  } else {
    listener_->SetNotServing();
  }
  // Until the job is made anew, no control thread can answer.
  watchdog_.emplace([](const Watchdog::Alive& alive) { alive(); });
  if (!restart) sd_notify(/*unset_environment=*/0, "STOPPING=1");
  if (admin_ != nullptr) admin_->Hide(/*restarts=*/restart);
  if (relay != nullptr) {
    limit.emplace(setup_.spec.drain + kCallLimit, [] { return "the servers of the upper job"; });
    relay->Stop();
  }
  limit.emplace(kDiskLimit, [] { return "the shards and the event log"; });
  absl::Notification stopped;
  job->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  EndCalls(restart, restart ? kRestartGrace : kStopGrace);
  limit.emplace(kDiskLimit, [] { return "the last checkpoint"; });
  LOG(INFO) << (restart ? "restarting in place after a rollback" : "stopped");
  // The state on disk is now the one that the lead has chosen.
  if (restart) durable_->awaits_rollback = false;
  return restart;
}

void ServerProcess::EndCalls(bool restart, absl::Duration grace) {
  if (restart && listener_->AwaitCalls(grace)) return;
  const StopLimit limit(grace + kCallLimit, [this] { return listener_->OpenCalls(); });
  listener_->Stop(restart ? absl::ZeroDuration() : grace);
  listener_.reset();
}

std::unique_ptr<SiteRelay> ServerProcess::MakeRelay(const std::unique_ptr<Job>* job) {
  const UpperJob& upper = *setup_.upper;
  SiteRelay::Parts parts = {
      .make_transport =
          [this, &upper] {
            return std::make_unique<GrpcTransport>(
                upper.addresses, upper.credentials,
                Bandwidth(setup_.bandwidth, threads_.executors().threads));
          },
      .failed = [this](const absl::Status& status) { requests_.Fail(status, ExitCodeOf(status)); },
      .ended =
          [this](const Departure& departure) {
            if (!departure.diverged.empty()) {
              requests_.Fail(absl::DataLossError("the run has diverged: " + departure.diverged),
                             ExitCode::kDiverged);
            } else {
              LOG(INFO) << "the run of the site has ended";
              requests_.Drain();
            }
          },
      .retired =
          [this, job] {
            // Numbers without a process are refused.
            for (uint32_t w = 0; w < (*job)->worker_count(); ++w) {
              DrainRequest request;
              request.set_worker(w);
              (*job)->Call(request, [](const absl::StatusOr<DrainReply>&) {});
            }
          }};
  if (durable_.has_value()) {
    // The relay fails after an error. The first failure decides the exit code.
    const auto or_fail = [this](absl::Status written) {
      if (!written.ok()) requests_.Fail(written, ExitCode::kIo);
      return written;
    };
    parts.passing = [this, or_fail](Step next) {
      return or_fail(PrepareRelayed(files_, folder_->path, next));
    };
    parts.passed = [this, or_fail] { return or_fail(StoreRelayed(files_, folder_->path)); };
  }
  return std::make_unique<SiteRelay>(SiteRelay::Options{.config = upper.config,
                                                        .job = upper.spec,
                                                        .worker = upper.worker,
                                                        .site_workers = setup_.spec.rule.workers,
                                                        .state_dir = setup_.flags.state_dir,
                                                        .memory = &memory_},
                                     std::move(parts), threads_.executors().threads);
}

absl::StatusOr<std::unique_ptr<Job>> ServerProcess::MakeOnce(RoundRelay* relay) {
  Epoch epoch{static_cast<uint64_t>(absl::ToUnixNanos(unix_clock_.Now()))};
  Step relayed_until;
  if (durable_.has_value()) {
    const Generation generation = snapshot_ == nullptr ? Generation() : snapshot_->run.generation;
    ASSIGN_OR_RETURN(epoch, NextEpoch(files_, folder_->path, unix_clock_.Now(), generation));
    if (relay != nullptr) {
      ASSIGN_OR_RETURN(relayed_until, ReadRelayed(files_, folder_->path));
    }
  }
  std::unique_ptr<Peers> peers;
  if (leads() && setup_.spec.server_count > 1) {
    peers = std::make_unique<GrpcPeers>(setup_.addresses, setup_.credentials);
  }
  ASSIGN_OR_RETURN(const std::string token_key, DrawTokenKey());
  return MakeJob(setup_.spec,
                 {.server = setup_.server,
                  .epoch = epoch,
                  .run = RandomRun(),
                  .token_key = token_key,
                  .memory_budget_bytes = memory_budget_,
                  .config = setup_.config,
                  .durable = durable_,
                  .insecure = setup_.insecure,
                  .page = admin_ == nullptr ? "" : admin_->page(),
                  .drained = [this] { requests_.Drain(); },
                  .tracer = tracer_.has_value() ? &*tracer_ : nullptr,
                  .memory = &memory_,
                  .relay = relay,
                  .relayed_until = relayed_until},
                 clock_, threads_.executors(), std::move(peers));
}

absl::StatusOr<std::unique_ptr<Listener>> ServerProcess::StartListener(Job& job, bool first) {
  const absl::Time deadline = clock_.Now() + (first ? absl::ZeroDuration() : kPortPatience);
  for (;;) {
    // A listener that ends lifts its limits.
    // The limits of an aggregator are those of its link to the upper job.
    auto listener =
        Listener::Start(job, address_, setup_.credentials, kMaxConnectionAge,
                        Bandwidth(setup_.upper.has_value() ? BandwidthRates() : setup_.bandwidth,
                                  threads_.executors().threads));
    if (listener.ok() || clock_.Now() >= deadline) return listener;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

std::vector<StatusSource> ServerProcess::StatusSources(Job& job, RemoteStatuses& remotes) {
  using Done = StatusSource::Done;
  std::vector<StatusSource> sources;
  sources.push_back(
      {setup_.server, [&job](Done done) { job.Call(StatusRequest(), std::move(done)); }});
  if (!leads()) return sources;
  for (uint32_t i = 1; i < setup_.addresses.size(); ++i) {
    remotes.push_back(
        std::make_unique<RemoteStatus>(setup_.addresses[i], ServerId{i}, setup_.credentials));
    sources.push_back({ServerId{i}, [remote = remotes.back().get()](Done done) {
                         remote->Ask(std::move(done));
                       }});
  }
  return sources;
}

absl::StatusOr<ExitCode> Run(const ServerFlags& flags, Clock& clock, Clock& unix_clock,
                             HugePageArena& memory) {
  ASSIGN_OR_RETURN(ServerSetup setup, MakeServerSetup(flags));
  for (const std::string& warning : setup.credentials.warnings()) LOG(WARNING) << warning;
  RaiseFileLimit();
  ServerProcess process(std::move(setup), clock, unix_clock, memory);
  RETURN_IF_ERROR(process.Open());
  return process.Serve();
}

}  // namespace

ExitCode RunServer(const ServerFlags& flags, Clock& clock, Clock& unix_clock,
                   HugePageArena& memory) {
  const absl::StatusOr<ExitCode> code = Run(flags, clock, unix_clock, memory);
  if (code.ok()) return *code;
  std::cerr << "server: " << code.status().message() << std::endl;
  return ExitCodeOf(code.status());
}

}  // namespace thinwire
