// server: one server process of a job. It reads the job file, serves the job, and shuts down
// cleanly at a stop signal (common/base/process_setup.h).
#include <glog/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/ids.h"
#include "common/base/process_setup.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/memory/available_memory.h"
#include "common/memory/huge_page_arena.h"
#include "common/memory/memory_trimmer.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "common/time/log_limit.h"
#include "common/time/stop_limit.h"
#include "common/time/trace.h"
#include "common/time/unix_clock.h"
#include "common/time/watchdog.h"
#include "common/tls/identity.h"
#include "common/tls/worker_token.h"
#include "common/version/version.h"
#include "config/command_flags.h"
#include "config/help.h"
#include "config/addresses.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/man_page.h"
#include "proto/grpc_credentials.h"
#include "server/admin/job_watch.h"
#include "server/admin/remote_status.h"
#include "server/admin/server_admin.h"
#include "server/durable/files.h"
#include "server/durable/state_folder.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/peers.h"
#include "server/rpc/grpc_peers.h"
#include "server/rpc/listener.h"

namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(5);
// Workers join again after a restart in place, so their calls may be cut off.
constexpr absl::Duration kRestartGrace = absl::Milliseconds(100);
// The system may need this long to release the port of the stopped listener.
constexpr absl::Duration kPortPatience = absl::Seconds(5);
// At the end, a server waits this long for its disk and, after the grace, for calls. The disk may be
// slow, and a last checkpoint large.
constexpr absl::Duration kDiskLimit = absl::Minutes(10);
constexpr absl::Duration kCallLimit = absl::Seconds(15);

// Prints STATUS and returns CODE.
thinwire::ExitCode Complain(const absl::Status& status, thinwire::ExitCode code) {
  std::cerr << "server: " << status.message() << std::endl;
  return code;
}

// The command-line flags of a server process.
struct Flags {
  std::string config;
  uint32_t server = 0;
  std::string addresses;    // addresses of all servers, by server number; empty: not given
  std::string listen;       // empty: not given
  std::string credentials;  // folder; empty: plaintext
  bool insecure = false;
  uint32_t threads = 0;
  std::string state_dir;       // empty: not given
  uint64_t memory_budget = 0;  // 0: the memory that is available at the start
  std::string admin;           // empty: no admin port
  std::string trace;           // file of the trace; empty: none
};

// Returns the addresses of all servers; empty if the flags do not name them. Errors:
// InvalidArgument for flags that contradict the job.
absl::StatusOr<std::vector<std::string>> ServerAddresses(const Flags& flags,
                                                         const thinwire::JobSpec& spec) {
  if (flags.server >= spec.server_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server: out of range (expected below ", spec.server_count,
                     ", the value of servers, got ", flags.server, ")"));
  }
  if (flags.addresses.empty()) {
    // The lead admits the other servers to the run, so it must reach them.
    if (flags.server != 0 || spec.server_count == 1) return std::vector<std::string>();
    return absl::InvalidArgumentError(
        absl::StrCat("--addresses: missing (expected the address of each of the ",
                     spec.server_count, " servers, because server 0 calls the other ones)"));
  }
  return thinwire::ParseAddresses(flags.addresses, spec.server_count,
                                  thinwire::ServerId{flags.server});
}

// Returns the address to listen on. Errors: InvalidArgument for a malformed address.
absl::StatusOr<std::string> ListenAddress(const Flags& flags,
                                          const std::vector<std::string>& addresses) {
  std::string listen = flags.listen;
  if (listen.empty()) listen = addresses.empty() ? "127.0.0.1:0" : addresses[flags.server];
  if (!thinwire::IsAddress(listen, /*least_port=*/0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: wrong value (expected host:port with a port from 0 to 65535, got \"", listen,
        "\")"));
  }
  return listen;
}

// Checks that this server listens for other machines, and the lead calls them, only with
// credentials or --insecure. ADDRESSES: of all servers; may be empty.
absl::Status CheckExposure(const Flags& flags, const std::string& listen,
                           const std::vector<std::string>& addresses) {
  const bool secure = !flags.credentials.empty();
  RETURN_IF_ERROR(thinwire::CheckPlaintext("--listen", {listen}, secure, flags.insecure));
  if (flags.server == 0) {
    RETURN_IF_ERROR(thinwire::CheckPlaintext("--addresses", addresses, secure, flags.insecure));
  }
  if (flags.insecure && !thinwire::IsLoopback(listen)) {
    LOG(WARNING) << "INSECURE: listening on " << listen
                 << " without credentials. Everybody who reaches this port can read and change the "
                    "model";
  }
  return absl::OkStatus();
}

// Checks that --state_dir is given if and only if the job keeps its state on disk.
absl::Status CheckStateDir(const Flags& flags, const thinwire::JobSpec& spec) {
  const bool durable = spec.recovery.durability != thinwire::Durability::kNone;
  if (durable != flags.state_dir.empty()) return absl::OkStatus();
  if (durable) {
    return absl::InvalidArgumentError(
        "--state_dir: missing (expected a folder for the server's state, because the job file has "
        "durability: checkpoint or log)");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--state_dir: only valid with durability: checkpoint or log in the job file (got durability: "
      "none and ",
      flags.state_dir, ")"));
}

thinwire::RunId RandomRun() {
  std::random_device random;
  uint64_t run = 0;
  while (run == 0) run = uint64_t{random()} << 32 | random();
  return thinwire::RunId{run};
}

// Tells the main thread when to stop or to restart the job. Handles stop signals from its
// construction on, so that these signals do not kill a server during its start.
class StopRequests {
 public:
  StopRequests() {
    for (const int signal : thinwire::StopSignals()) signals_.add(signal);
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      LOG(INFO) << "signal " << signal << ": stopping";
      Stop();
    });
  }

  // Blocks until the first signal or the next call of Fail or Restart. Returns at once if one has
  // already arrived. Returns whether the job must be made anew.
  bool WaitForRestart() {
    io_.restart();
    if (!stopped_) io_.run();
    return !stopped_;
  }
  // Returns the exit code of the process. Prints the status of Fail if it was called.
  thinwire::ExitCode End() const {
    return failure_.ok() ? thinwire::ExitCode::kOk : Complain(failure_, code_);
  }

  // Ends WaitForRestart() with FAILURE, which is not OK, and the process with CODE. Thread-safe.
  void Fail(const absl::Status& failure, thinwire::ExitCode code) {
    boost::asio::post(io_, [this, failure, code] {
      LOG(ERROR) << failure.message() << ": stopping";
      failure_ = failure;
      code_ = code;
      Stop();
    });
  }
  // Ends WaitForRestart() as a signal does. Thread-safe.
  void Drain() {
    boost::asio::post(io_, [this] { Stop(); });
  }
  // Ends WaitForRestart(). Thread-safe.
  void Restart() {
    boost::asio::post(io_, [this] { io_.stop(); });
  }

 private:
  void Stop() {
    stopped_ = true;
    io_.stop();
  }

  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_};
  bool stopped_ = false;
  absl::Status failure_;
  thinwire::ExitCode code_ = thinwire::ExitCode::kOk;
};

// Raises the limit on open files to the largest value that this process may set. Each connection is
// an open file, and gRPC 1.51 accepts no connection any more once an accept has failed.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    PLOG(WARNING) << "cannot raise the limit on open files";
}

uint64_t MemoryBudget(const Flags& flags) {
  return flags.memory_budget != 0 ? flags.memory_budget : thinwire::AvailableMemory();
}

// Starts to serve JOB on ADDRESS. If this is not the FIRST listener of the process, waits for the
// port of the last one.
absl::StatusOr<std::unique_ptr<thinwire::Listener>> StartListener(
    thinwire::Job& job, const std::string& address, const thinwire::Credentials& credentials,
    bool first) {
  const absl::Time deadline = absl::Now() + (first ? absl::ZeroDuration() : kPortPatience);
  for (;;) {
    auto listener = thinwire::Listener::Start(job, address, credentials);
    if (listener.ok() || absl::Now() >= deadline) return listener;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

// The other servers, whose status the lead's admin page shows too.
using RemoteStatuses = std::vector<std::unique_ptr<thinwire::RemoteStatus>>;

// Returns the sources of the admin page: this server, and at the lead all servers. Fills in
// REMOTES, which must outlive the sources.
std::vector<thinwire::StatusSource> StatusSources(const Flags& flags,
                                                  const std::vector<std::string>& addresses,
                                                  const thinwire::Credentials& credentials,
                                                  thinwire::Job& job, RemoteStatuses& remotes) {
  using thinwire::ServerId;
  using Done = thinwire::StatusSource::Done;
  std::vector<thinwire::StatusSource> sources;
  sources.push_back({ServerId{flags.server}, [&job](Done done) { job.Status(std::move(done)); }});
  if (flags.server != 0) return sources;
  for (uint32_t i = 1; i < addresses.size(); ++i) {
    remotes.push_back(
        std::make_unique<thinwire::RemoteStatus>(addresses[i], ServerId{i}, credentials));
    sources.push_back({ServerId{i}, [remote = remotes.back().get()](Done done) {
                         remote->Ask(std::move(done));
                       }});
  }
  return sources;
}

// Passes gRPC's lines to the log. Peers cause its errors, such as failed handshakes, at any rate.
void LogGrpcLine(gpr_log_func_args* line) {
  // Never destroyed, because gRPC's threads may log after main() has returned.
  static thinwire::LogLimit& limit = *new thinwire::LogLimit(20, absl::Seconds(10));
  if (line->severity != GPR_LOG_SEVERITY_ERROR) {
    LOG(INFO) << "gRPC: " << line->message;
  } else if (const auto more = limit.Next(absl::Now())) {
    LOG(WARNING) << "gRPC: " << line->message << *more;
  }
}

// Returns the exit code of the process.
absl::StatusOr<thinwire::ExitCode> Serve(const Flags& flags) {
  ASSIGN_OR_RETURN(const thinwire::JobText text, thinwire::ReadJobFile(flags.config));
  ASSIGN_OR_RETURN(const thinwire::JobSpec spec, thinwire::CheckJob(text.config, text.places));
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, ServerAddresses(flags, spec));
  ASSIGN_OR_RETURN(const std::string listen, ListenAddress(flags, addresses));
  RETURN_IF_ERROR(CheckExposure(flags, listen, addresses));
  const bool insecure = flags.credentials.empty() && !thinwire::IsLoopback(listen);
  RETURN_IF_ERROR(CheckStateDir(flags, spec));
  ASSIGN_OR_RETURN(
      const thinwire::Credentials credentials,
      thinwire::Credentials::Load(
          flags.credentials, thinwire::Identity{thinwire::Role::kServer, spec.name, flags.server}));
  for (const std::string& warning : credentials.warnings()) LOG(WARNING) << warning;
  RaiseFileLimit();
  const thinwire::MemoryTrimmer trimmer;
  StopRequests signals;
  thinwire::SteadyClock clock;
  thinwire::UnixClock unix_clock;
  std::optional<thinwire::Tracer> tracer;
  if (!flags.trace.empty()) {
    if (const absl::Status status = thinwire::CheckReplaceable(flags.trace); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
    }
    tracer.emplace(absl::StrCat("server ", flags.server), unix_clock);
  }
  std::unique_ptr<thinwire::ServerAdmin> admin;
  if (!flags.admin.empty()) {
    ASSIGN_OR_RETURN(
        admin, thinwire::ServerAdmin::Start(flags.admin, thinwire::ServerId{flags.server}, clock));
    LOG(INFO) << "admin " << admin->address();
  }
  // The arena that allocates the masters is never destroyed, because a gRPC thread may release sent
  // masters after Serve() has returned.
  static thinwire::HugePageArena& arena = *new thinwire::HugePageArena;
  thinwire::PosixFiles files;
  std::optional<thinwire::StateFolder> folder;
  std::optional<thinwire::DurableOptions> durable;
  if (!flags.state_dir.empty()) {
    ASSIGN_OR_RETURN(folder, thinwire::OpenStateFolder(files, flags.state_dir,
                                                       thinwire::ServerId{flags.server}));
    durable = {.files = &files,
               .folder = folder->path,
               .failed =
                   [&signals](const absl::Status& failure) {
                     signals.Fail(failure, thinwire::ExitCodeOf(failure));
                   },
               .log_failed =
                   [&signals](const absl::Status& failure) {
                     signals.Fail(failure, thinwire::ExitCode::kIo);
                   },
               .restart = [&signals] { signals.Restart(); }};
  }
  const uint64_t memory_budget = MemoryBudget(flags);
  std::string address = listen;
  std::optional<thinwire::Watchdog> watchdog;
  thinwire::JobThreads threads(flags.threads);
  for (bool first = true;; first = false) {
    thinwire::Epoch epoch{static_cast<uint64_t>(absl::GetCurrentTimeNanos())};
    if (durable.has_value()) {
      ASSIGN_OR_RETURN(epoch, thinwire::NextEpoch(files, folder->path, absl::Now()));
    }
    std::unique_ptr<thinwire::Peers> peers;
    if (flags.server == 0 && spec.server_count > 1) {
      peers = std::make_unique<thinwire::GrpcPeers>(addresses, credentials);
    }
    ASSIGN_OR_RETURN(const std::string token_key, thinwire::DrawTokenKey());
    std::optional<thinwire::StopLimit> limit;  // destroyed after the job, which writes to the disk
    ASSIGN_OR_RETURN(const std::unique_ptr<thinwire::Job> job,
                     thinwire::MakeJob(spec,
                                       {.server = thinwire::ServerId{flags.server},
                                        .epoch = epoch,
                                        .run = RandomRun(),
                                        .token_key = token_key,
                                        .memory_budget_bytes = memory_budget,
                                        .config = text.config,
                                        .durable = durable,
                                        .insecure = insecure,
                                        .drained = [&signals] { signals.Drain(); },
                                        .tracer = tracer.has_value() ? &*tracer : nullptr,
                                        .memory = &arena},
                                       clock, threads.executors(), std::move(peers)));
    ASSIGN_OR_RETURN(const std::unique_ptr<thinwire::Listener> listener,
                     StartListener(*job, address, credentials, first));
    job->StartTicking(std::min(absl::Milliseconds(100), spec.lease / 10));
    LOG(INFO) << "server " << flags.server << " of " << spec.server_count << ", epoch " << epoch
              << ", job " << spec;
    RemoteStatuses remotes;
    if (admin != nullptr) {
      admin->Show(StatusSources(flags, addresses, credentials, *job, remotes));
    }
    if (first) {
      std::cout << "listening " << listener->address() << std::endl;
      sd_notify(/*unset_environment=*/0,
                absl::StrCat("READY=1\nSTATUS=listening ", listener->address()).c_str());
    }
    watchdog.emplace([&job](thinwire::Watchdog::Alive alive) { job->Tick(std::move(alive)); });

    const bool restart = signals.WaitForRestart();
    listener->SetNotServing();
    // Until the job is made anew, no control thread can answer.
    watchdog.emplace([](const thinwire::Watchdog::Alive& alive) { alive(); });
    if (!restart) sd_notify(/*unset_environment=*/0, "STOPPING=1");
    if (admin != nullptr) admin->Hide();
    limit.emplace(kDiskLimit, [] { return "the shards and the event log"; });
    absl::Notification stopped;
    job->Stop([&stopped] { stopped.Notify(); });
    stopped.WaitForNotification();
    const absl::Duration grace = restart ? kRestartGrace : kStopGrace;
    limit.emplace(grace + kCallLimit, [&listener] { return listener->OpenCalls(); });
    listener->Stop(grace);
    limit.emplace(kDiskLimit, [] { return "the last checkpoint"; });
    LOG(INFO) << (restart ? "restarting in place after a rollback" : "stopped");
    if (!restart) {
      if (tracer.has_value()) RETURN_IF_ERROR(tracer->Write(flags.trace));
      return signals.End();
    }
    // The state on disk is now the one that the lead has chosen.
    durable->awaits_rollback = false;
    address = listener->address();
  }
}

void AddFlags(thinwire::CommandFlags command, Flags& flags) {
  command.Add("--config", flags.config, "The job file (proto/job.proto in text format)")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG")
      .Required();
  command
      .Add("--server", flags.server,
           "The number of this server, from 0. Server 0 leads. Default: 0")
      .Type("NUMBER")
      .Environment("THINWIRE_SERVER");
  command
      .Add("--addresses", flags.addresses,
           "host:port of every server, in the order of their numbers, separated by commas. "
           "Server 0 of several servers requires it, because it calls the other servers")
      .Type("LIST")
      .Environment("THINWIRE_ADDRESSES");
  command
      .Add("--listen", flags.listen,
           "The host:port to listen on. Port 0 takes a free port. Default: the entry of this "
           "server in --addresses, without --addresses 127.0.0.1:0")
      .Type("ADDRESS")
      .Environment("THINWIRE_LISTEN");
  command
      .Add("--credentials", flags.credentials,
           "The folder with ca.pem, cert.pem and key.pem (thinwire certs). The server then "
           "accepts only peers with a certificate of the job, over mutual TLS")
      .Type("DIR")
      .Environment("THINWIRE_CREDENTIALS");
  command
      .AddSwitch(
          "--insecure", flags.insecure,
          "Listens on an address that other machines reach, without credentials: everybody who "
          "reaches the port can read and change the model")
      .Environment("THINWIRE_INSECURE");
  command
      .Add("--threads", flags.threads,
           "The number of threads that run the shards. 0: one per core. Default: 0")
      .Type("COUNT")
      .Between(0u, thinwire::kMaxThreads)
      .Environment("THINWIRE_THREADS");
  command
      .Add("--state_dir", flags.state_dir,
           "The folder in which the servers of this machine keep their state; required with "
           "durability: checkpoint and log. A server whose state is there continues from it")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  command
      .Add("--memory_budget", flags.memory_budget,
           "The most memory that this server may use, in bytes or with a unit, as in 8GB: "
           "parameters, received messages and connections. A worker whose model does not fit is "
           "refused. 0: the memory that is available at the start. Default: 0")
      .Type("BYTES")
      .Bytes()
      .Environment("THINWIRE_MEMORY_BUDGET");
  command
      .Add("--admin", flags.admin,
           "The host:port of the status page, metrics and health checks, in plaintext. Port "
           "0 takes a free port, which the log names. Default: none")
      .Type("ADDRESS")
      .Environment("THINWIRE_ADMIN");
  command
      .Add("--trace", flags.trace,
           "The file for the trace of this server, written at the end (thinwire trace). "
           "Default: none")
      .Type("FILE")
      .Environment("THINWIRE_TRACE");
}

}  // namespace

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  thinwire::IgnoreBrokenPipes();
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  thinwire::Program program(
      "thinwire server: holds shards of a model's parameters and applies the workers' updates.");
  CLI::App& app = program.app();
  thinwire::CommandFlags command(app);
  command.Footer(
      std::string("Example:\n") +
      "  server --config job.textproto --addresses a:7000,b:7000 --credentials certs\n"
      "The server prints \"listening HOST:PORT\" when it is ready. SIGTERM stops it in order.\n" +
      thinwire::ExitCodesHelp());
  thinwire::SetHelpFormat(app, thinwire::TerminalColumns(STDOUT_FILENO));
  thinwire::AddManFlag(app, "thinwire-server");
  command.AddVersion(thinwire::VersionText("thinwire server"));
  Flags flags;
  AddFlags(command, flags);
  if (const std::optional<int> code = program.Parse(argc, argv); code.has_value()) return *code;
  gpr_set_log_function(LogGrpcLine);
  // Health checks and reflection are settings of the whole process, so main enables them.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const absl::StatusOr<thinwire::ExitCode> code = Serve(flags);
  return static_cast<int>(code.ok() ? *code
                                    : Complain(code.status(), thinwire::ExitCodeOf(code.status())));
}
