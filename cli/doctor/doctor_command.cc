#include "cli/doctor/doctor_command.h"

#include <grpcpp/support/channel_arguments.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/doctor/candidates.h"
#include "cli/doctor/disk_check.h"
#include "cli/doctor/doctor_report.h"
#include "cli/doctor/link.h"
#include "cli/doctor/prediction.h"
#include "cli/doctor/tcp_settings.h"
#include "cli/process/process_set.h"
#include "cli/rpc/server_calls.h"
#include "cli/rpc/server_flags.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "config/addresses.h"
#include "config/command_flags.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"
#include "proto/grpc_credentials.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire doctor\n"
    "  thinwire doctor --listen 0.0.0.0:7000 --credentials certs/server-0\n"
    "  thinwire doctor --config job.textproto --addresses a:7000,b:7000 \\\n"
    "      --credentials certs/worker-0 --parameters 25000000 --compute 120ms\n"
    "  thinwire doctor --state_dir /data --json\n"
    "At --addresses, another doctor listens (--listen) or a server of a running job. A server is "
    "asked for its status and parameters; only a doctor can measure the upload.";

// The steps of a running job are counted for this long.
constexpr absl::Duration kStepSample = absl::Seconds(3);
constexpr absl::Duration kTimeout = absl::Seconds(5);

struct RunningJob {
  uint64_t value_count = 0;
  std::optional<absl::Duration> step;  // nullopt: no step in kStepSample
};

uint64_t StepOf(const std::vector<StatusReply>& statuses) {
  std::optional<uint64_t> step;
  for (const StatusReply& status : statuses) {
    for (const ShardStatus& shard : status.shards()) {
      step = std::min<uint64_t>(step.value_or(shard.frontier()), shard.frontier());
    }
  }
  return step.value_or(0);
}

// Returns the job that runs at ADDRESSES; nullopt if a server does not answer or has no model yet.
std::optional<RunningJob> FindJob(const std::vector<std::string>& addresses,
                                  const Credentials& credentials, Clock& clock) {
  ServerCalls calls(addresses, credentials);
  const auto first = calls.Status(kTimeout);
  const absl::Time begin = clock.Now();
  if (!first.ok()) return std::nullopt;
  RunningJob job;
  for (const StatusReply& status : *first) {
    for (const ShardStatus& shard : status.shards()) job.value_count += shard.values();
  }
  if (job.value_count == 0) return std::nullopt;
  absl::SleepFor(kStepSample);
  const auto second = calls.Status(kTimeout);
  if (!second.ok()) return job;
  const uint64_t step_count = StepOf(*second) - std::min(StepOf(*first), StepOf(*second));
  if (step_count > 0) job.step = (clock.Now() - begin) / static_cast<int64_t>(step_count);
  return job;
}

// Measures everything that COMMAND names.
class Examination {
 public:
  explicit Examination(const DoctorCommand& command) : command_(command) {}

  absl::StatusOr<DoctorReport> Run() {
    if (!command_.config_file.empty()) {
      ASSIGN_OR_RETURN(job_, ReadJobFile(command_.config_file));
      ExpandRecipe(job_.config, job_.places);
    }
    ASSIGN_OR_RETURN(spec_, CheckJob(job_.config, job_.places));
    if (!command_.compute.empty()) {
      absl::Duration compute;
      if (!absl::ParseDuration(command_.compute, &compute) || compute < absl::ZeroDuration()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--compute: wrong value (expected a time such as 120ms, got ", command_.compute, ")"));
      }
      compute_ = compute;
    }
    RETURN_IF_ERROR(MeasureNetwork());
    RETURN_IF_ERROR(MeasureState());
    RETURN_IF_ERROR(MeasureCodecs());
    PredictSteps();
    return std::move(report_);
  }

 private:
  absl::Status MeasureNetwork() {
    if (command_.servers.addresses.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<std::string> addresses, SplitAddresses(command_.servers));
    ASSIGN_OR_RETURN(const Credentials credentials, LoadCredentials(command_.servers));
    if (const auto running = FindJob(addresses, credentials, clock_)) {
      value_count_ = running->value_count;
      report_.measured_step = running->step;
    }
    for (uint32_t i = 0; i < addresses.size(); ++i) {
      const auto channel = credentials.Connect(addresses[i], ServerId{i}, grpc::ChannelArguments());
      const absl::StatusOr<LinkSpeed> speed = MeasureLink(channel, clock_);
      if (!speed.ok()) {
        return absl::Status(speed.status().code(), absl::StrCat("server ", i, " (", addresses[i],
                                                                "): ", speed.status().message()));
      }
      report_.links.push_back({.address = addresses[i], .speed = *speed});
      longest_round_trip_ = std::max(longest_round_trip_, speed->round_trip);
    }
    if (const auto tcp = ReadTcpSettings()) {
      report_.notes = TcpAdvice(*tcp, longest_round_trip_);
    }
    return absl::OkStatus();
  }

  absl::Status MeasureState() {
    if (command_.parameters > 0) value_count_ = command_.parameters;
    if (command_.state_dir.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(report_.disk, MeasureStateDisk(command_.state_dir, files_, clock_));
    if (value_count_ == 0) value_count_ = ValueCountIn(files_, command_.state_dir).value_or(0);
    return absl::OkStatus();
  }

  absl::Status MeasureCodecs() {
    uint64_t shard_values = kLargestShardSize;
    if (value_count_ > 0) {
      const TensorShape model = {"values", {static_cast<int64_t>(value_count_)}};
      ASSIGN_OR_RETURN(const Partition partition,
                       Partition::Make({model}, spec_.shard_size, spec_.server_count));
      shard_values = std::min(partition.shard_size(), value_count_);
      shard_count_ = std::max(1u, partition.shard_count() / spec_.server_count);
    }
    ASSIGN_OR_RETURN(report_.candidates, MeasureCandidates(job_, shard_values, clock_));
    return absl::OkStatus();
  }

  void PredictSteps() {
    StepConditions conditions = {.value_count = value_count_,
                                 .worker_count = spec_.rule.workers,
                                 .server_count = spec_.server_count,
                                 .shard_count = shard_count_,
                                 .round_trip = longest_round_trip_};
    std::optional<double> up;
    std::optional<double> down;
    for (const MeasuredLink& link : report_.links) {
      const auto slower = [](std::optional<double> a, std::optional<double> b) {
        return a.has_value() && b.has_value() ? std::min(a, b) : std::max(a, b);
      };
      up = slower(up, link.speed.up);
      down = slower(down, link.speed.down);
    }
    if (value_count_ == 0) {
      Note("no prediction: unknown model size (expected --parameters or a running job)");
    }
    if (!up.has_value() && !down.has_value()) {
      Note("no prediction: unknown network speed (expected --addresses)");
    }
    if (value_count_ == 0 || (!up.has_value() && !down.has_value())) return;
    if (!up.has_value()) Note("the upload is assumed to be as fast as the download");
    conditions.up = up.has_value() ? *up : *down;
    conditions.down = down.has_value() ? *down : *up;
    if (spec_.recovery.durability == Durability::kLog) {
      if (report_.disk.has_value()) {
        conditions.disk = report_.disk;
      } else {
        Note("the log of durability: log is not predicted (expected --state_dir)");
      }
    }
    conditions.compute = ComputeTime(conditions);
    for (const CodecCandidate& candidate : report_.candidates) {
      report_.predictions.push_back(Predict(candidate, conditions));
    }
    report_.conditions = conditions;
  }

  // Returns --compute. Without it, subtracts the predicted parts from the measured step of the job.
  absl::Duration ComputeTime(const StepConditions& conditions) {
    if (compute_.has_value()) return *compute_;
    const CodecCandidate& own = report_.candidates.front();
    const bool is_own =
        own.push == Compression::Codec::Value_Name(job_.config.compression().push()) &&
        own.pull == Compression::Codec::Value_Name(job_.config.compression().pull());
    if (command_.config_file.empty() || !report_.measured_step.has_value() || !is_own) {
      Note("the time of computing is not included (expected --compute)");
      return absl::ZeroDuration();
    }
    Note("the time of computing is the measured step without its predicted other parts");
    return std::max(absl::ZeroDuration(), *report_.measured_step - Predict(own, conditions).step);
  }

  void Note(const char* note) { report_.notes.push_back(note); }

  const DoctorCommand& command_;
  PosixFiles files_;
  SteadyClock clock_;
  JobText job_;
  JobSpec spec_;
  std::optional<absl::Duration> compute_;
  uint64_t value_count_ = 0;  // 0: unknown
  uint32_t shard_count_ = 1;  // of one server
  absl::Duration longest_round_trip_;
  DoctorReport report_;
};

// Serves other doctors until a signal arrives.
absl::StatusOr<ExitCode> Listen(const DoctorCommand& command, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Signals> signals, Signals::Block());
  if (!IsAddress(command.listen, /*least_port=*/0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: wrong value (expected host:port with a port from 0 to 65535, got \"",
        command.listen, "\")"));
  }
  const bool secure = !command.servers.credentials.empty();
  RETURN_IF_ERROR(CheckPlaintext("--listen", {command.listen}, secure, command.servers.insecure));
  ASSIGN_OR_RETURN(const Credentials credentials,
                   Credentials::Load(command.servers.credentials, std::nullopt));
  if (credentials.identity().has_value() && credentials.identity()->role != Role::kServer) {
    return absl::InvalidArgumentError(
        absl::StrCat("--credentials: the certificate of another role (expected a server's, got ",
                     credentials.identity()->DnsName(), ")"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<LinkListener> listener,
                   LinkListener::Start(command.listen, credentials));
  out << "listening " << listener->address() << std::endl;
  for (;;) {
    pollfd file = {.fd = signals->fd(), .events = POLLIN, .revents = 0};
    poll(&file, 1, -1);
    for (const int number : signals->Take()) {
      if (number == SIGINT) return ExitCode::kInterrupted;
      if (number != SIGCHLD) return ExitCode::kPreempted;
    }
  }
}

absl::StatusOr<ExitCode> Run(const DoctorCommand& command, std::ostream& out) {
  if (!command.listen.empty()) return Listen(command, out);
  ASSIGN_OR_RETURN(const DoctorReport report, Examination(command).Run());
  if (command.json) {
    out << DoctorJson(report).dump(2) << std::endl;
  } else {
    out << DoctorText(report) << std::flush;
  }
  return ExitCode::kOk;
}

}  // namespace

CLI::App* AddDoctor(CLI::App& app, DoctorCommand& command) {
  CLI::App* doctor = CommandFlags(app).AddSubcommand(
      "doctor", "Measures codecs, disk and network, and predicts the time of a step");
  CommandFlags flags(*doctor);
  flags
      .Add("--config", command.config_file,
           "The job file: its numbers of workers and servers, and its codec settings")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG");
  AddServerFlags(flags, command.servers, "(with --listen) a server's or (otherwise) anybody's");
  flags
      .Add("--state_dir", command.state_dir,
           "The folder whose disk is measured. If it has the state of a job, the "
           "prediction is about its model")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  flags
      .Add("--compute", command.compute,
           "The time that a worker computes in a step, such as 120ms. Default: the measured "
           "step of the running job without its predicted other parts")
      .Type("TIME");
  flags
      .Add("--parameters", command.parameters,
           "The number of parameters of the model. Default: those of the running job or of "
           "the state")
      .Type("COUNT");
  flags.AddSwitch("--json", command.json, "Prints JSON");
  flags
      .Add("--listen", command.listen,
           "Measures nothing, but listens at this host:port for the doctors of other "
           "machines, until Ctrl-C")
      .Type("ADDRESS");
  flags.Footer(kExamples);
  return doctor;
}

ExitCode RunDoctor(const DoctorCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<ExitCode> code = Run(command, out);
  return code.ok() ? *code : Fail(console, code.status());
}

}  // namespace thinwire
