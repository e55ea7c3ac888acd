#include "cli/train/train_command.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/checkpoint/state_dir.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/trace/trace_command.h"
#include "cli/train/report.h"
#include "cli/train/run_summary.h"
#include "cli/train/train_admin.h"
#include "cli/train/train_run.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/unix_clock.h"
#include "config/command_flags.h"
#include "config/connection_flags.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/parts/consistency.h"
#include "server/core/optimizer/schedule.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config examples/fashion_mnist.textproto\n"
    "  thinwire train --config job.textproto --workers 8 --push topk --density 0.01\n"
    "  thinwire train --config job.textproto --mode ssp --slack 3 --report run.json\n"
    "  thinwire train --config job.textproto --durability log --state_dir state\n"
    "  thinwire train --model softmax --workers 2 --straggler 1:50ms\n"
    "  thinwire train --config job.textproto --output model.safetensors --keep best";

// Makes the writer of TensorBoard's event files. Returns null without --tensorboard. REQUIRES:
// CheckJob accepts CONFIG.
absl::StatusOr<std::unique_ptr<RunSummary>> MakeSummary(const TrainCommand& command,
                                                        const JobConfig& config, Clock& clock) {
  if (command.tensorboard.empty()) return nullptr;
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(config));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(job.schedule));
  return RunSummary::Create(command.tensorboard, schedule, clock);
}

// Merges the traces that the processes of a run have written in FOLDER.
absl::StatusOr<std::string> MergeRun(const std::string& folder, const std::string& path) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == kTraceEnding) files.push_back(entry.path().string());
  }
  ASSIGN_OR_RETURN(const MergedTrace merged, MergeTraces(files, path));
  return TextOf(merged, path);
}

}  // namespace

void AddRunFlags(CLI::App& app, TrainCommand& command) {
  CommandFlags flags(app);
  flags
      .Add("--config", command.config_file,
           "The job file (proto/job.proto in text format). The flags below replace its fields")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG");
  flags
      .Add("--bin_dir", command.bin_dir,
           "The folder of the programs server and worker. Default: beside this program")
      .Type("DIR")
      .Environment("THINWIRE_BIN_DIR");
  flags
      .Add("--state_dir", command.state_dir,
           "With durability: checkpoint or log, the folder in which the servers keep their "
           "state. It "
           "must be empty, except with --resume. Default: a temporary folder")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  flags
      .AddSwitch(
          "--resume", command.resume,
          "Goes on with the run in --state_dir. The job must be the same, except for the task "
          "(such as --epochs), --servers and --shard_size")
      .Environment("THINWIRE_RESUME");
  flags
      .Add("--restarts", command.restarts,
           "How many processes of the run are started again if they die: workers, and with "
           "durability: checkpoint or log servers. Default: 3")
      .Type("COUNT")
      .Environment("THINWIRE_RESTARTS");
  flags.AddSwitch("--verbose", command.verbose, "Shows all settings of the job at the start")
      .Environment("THINWIRE_VERBOSE");
  const Flag output =
      flags
          .Add("--output", command.output.path,
               "The file that gets the trained model, as safetensors with the names of "
               "PyTorch's state_dict. Without it, no model is written")
          .Type("FILE")
          .Environment("THINWIRE_OUTPUT");
  flags
      .Add(
          "--keep", command.output.keep,
          "The parameters that --output gets: the final ones, or those with the highest "
          "test accuracy, with loss: script the lowest test loss, at the end of an epoch. Default: "
          "last")
      .Type("last|best")
      .OneOf({"last", "best"})
      .Needs(output)
      .Environment("THINWIRE_KEEP");
  AddBandwidth(flags, command.bandwidth, "each worker and each server of the run");
  flags
      .Add("--admin", command.admin,
           "The host:port of a status page of the run, with metrics, in plaintext. Port 0 "
           "takes a free port. Default: none")
      .Type("ADDRESS")
      .Environment("THINWIRE_ADMIN");
  flags
      .Add("--tensorboard", command.tensorboard,
           "The folder for TensorBoard's event files of the run. Default: none")
      .Type("DIR")
      .Environment("THINWIRE_TENSORBOARD");
  flags.AllowExtras();  // CheckNoExtras() reports unknown arguments
}

CLI::App* AddTrain(CLI::App& app, TrainCommand& command) {
  CLI::App* train =
      CommandFlags(app).AddSubcommand("train", "Trains with servers and workers on this machine");
  CommandFlags flags(*train);
  AddRunFlags(*train, command);
  flags
      .Add("--trace", command.trace,
           "The file for a trace of all processes, for https://ui.perfetto.dev. Default: "
           "none")
      .Type("FILE")
      .Environment("THINWIRE_TRACE");
  flags
      .Add(
          "--grow_to", command.grow_to,
          "With schedule: noise_scale, the largest number of workers. When the batch grows, the "
          "run "
          "starts workers until none accumulates batches, or until there are COUNT. Default: those "
          "of the job")
      .Type("COUNT")
      .Environment("THINWIRE_GROW_TO");
  flags.Footer(kExamples);
  command.fields.emplace(*train);
  return train;
}

absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags,
                                FilesOf files, Console& console) {
  JobText text;
  if (!config_file.empty()) {
    ASSIGN_OR_RETURN(text, ReadJobFile(config_file));
  } else {
    console.Note("no --config: the flags and the defaults are the job");
  }
  RETURN_IF_ERROR(flags.Apply(text.config, text.places));
  // Adaptive precision needs checkpoints.
  const bool adaptive = text.config.compression().push() == Compression::Codec::adaptive;
  if (adaptive && !text.config.recovery().has_durability()) {
    text.config.mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
  }
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  if (files == FilesOf::kThisMachine) {
    const std::vector<std::string> missing = MissingFiles(job.task, text.places);
    if (!missing.empty()) return absl::NotFoundError(absl::StrJoin(missing, "\n"));
  }
  for (const std::string& warning : WarningsOf(text.config, job, text.places))
    console.Warning(warning);
  return text.config;
}

absl::Status CheckOutputs(const TrainCommand& command, const JobConfig& config) {
  RETURN_IF_ERROR(RatesOf(command.bandwidth).status());
  // Reports the errors before hours of training, not after.
  if (!config.report().empty()) {
    if (auto status = CheckReportPath(config.report()); !status.ok())
      return absl::Status(status.code(), absl::StrCat("report: ", status.message()));
  }
  if (!command.output.path.empty()) {
    if (auto status = CheckReplaceable(command.output.path); !status.ok())
      return absl::Status(status.code(), absl::StrCat("--output: ", status.message()));
  }
  if (!command.trace.empty()) {
    if (auto status = CheckReplaceable(command.trace); !status.ok())
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckGrowTo(uint32_t grow_to, const JobConfig& config) {
  if (grow_to == 0) return absl::OkStatus();
  if (const auto schedule = config.optimization().schedule();
      schedule != Optimization::Schedule::noise_scale) {
    return absl::InvalidArgumentError(
        absl::StrCat("--grow_to: only valid with schedule: noise_scale (got schedule: ",
                     Optimization::Schedule::Value_Name(schedule), ")"));
  }
  const Rule rule = RuleOf(config.consistency());
  if (grow_to > rule.workers && grow_to <= rule.max_workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--grow_to: out of range (expected above ", rule.workers,
                   ", the value of workers, and at most ", rule.max_workers,
                   ", the value of max_workers, got ", grow_to, ")"));
}

ExitCode RunJob(const TrainCommand& command, TrainSetting setting, Signals& signals, TempDir& dir,
                Console& console, std::ostream& out) {
  const JobConfig config = setting.config;
  console.Note(command.verbose ? absl::StrCat("# the job\n", EffectiveText(config), "# the run")
                               : absl::StrCat("# the job; other settings have their defaults\n",
                                              ChangedText(config), "# the run"));
  SteadyClock clock;
  std::unique_ptr<TrainAdmin> admin;
  if (!command.admin.empty()) {
    auto started = TrainAdmin::Start(command.admin, config, clock, command.bandwidth.price_per_gb);
    if (!started.ok()) return Fail(console, started.status(), ExitCodeOf(started.status()));
    admin = *std::move(started);
    console.Note(absl::StrCat("admin ", admin->address()));
  }
  UnixClock unix_clock;
  const auto summary = MakeSummary(command, config, unix_clock);
  if (!summary.ok()) {
    return Fail(console,
                absl::Status(summary.status().code(),
                             absl::StrCat("--tensorboard: ", summary.status().message())),
                ExitCode::kConfig);
  }
  setting.resume = command.resume;
  setting.restarts = command.restarts;
  setting.grow_to = command.grow_to;
  setting.output = command.output;
  setting.bandwidth = command.bandwidth;
  setting.admin = admin.get();
  setting.summary = summary->get();
  setting.trace = !command.trace.empty();
  TrainRun run(setting, signals, dir, console, clock);
  const ExitCode code = run.Run();
  // Without a step there are only problems, which are shown already.
  if (run.result().record.steps() > 0) out << ReportTable(run.result()) << std::flush;
  if (!command.state_dir.empty() && (code == ExitCode::kUnavailable || run.result().interrupted)) {
    console.Note(
        absl::StrCat("The run can go on from its state in ", command.state_dir, ": add --resume"));
  }
  if (!run.result().problems.empty()) {
    dir.Keep();
    console.Note(absl::StrCat("The logs of all processes are in ", dir.path()));
  }
  const absl::Status shown =
      out ? absl::OkStatus() : absl::UnavailableError("standard output: cannot be written");
  if (!config.report().empty()) {
    const absl::Status written = WriteReport(config.report(), ReportJson(run.result()));
    if (!written.ok()) return Fail(console, written, ExitCode::kIo);
  }
  if (!command.trace.empty()) {
    const absl::StatusOr<std::string> merged = MergeRun(dir.path(), command.trace);
    if (!merged.ok()) return Fail(console, merged.status(), ExitCode::kIo);
    console.Note(*merged);
  }
  if (!shown.ok()) return Fail(console, shown, ExitCode::kIo);
  return code;
}

ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out) {
  const auto programs = FindPrograms(command.self, command.bin_dir);
  if (!programs.ok()) return Fail(console, programs.status(), ExitCode::kUnavailable);
  for (const absl::Status& status :
       {CheckGrowTo(command.grow_to, config), CheckOutputs(command, config)}) {
    if (!status.ok()) return Fail(console, status, ExitCode::kConfig);
  }
  const auto signals = Signals::Block();
  if (!signals.ok()) return Fail(console, signals.status(), ExitCode::kUnavailable);
  const auto dir = TempDir::Make(command.temp_parent);
  if (!dir.ok()) return Fail(console, dir.status(), ExitCode::kUnavailable);
  TrainSetting setting;
  setting.config = config;
  setting.programs = *programs;
  setting.state_dir = command.state_dir;
  if (setting.state_dir.empty() && KeepsState(config) && !command.resume)
    setting.state_dir = (*dir)->PathOf("state");
  if (auto status = PrepareStateDir(setting.state_dir, command.resume, config); !status.ok())
    return Fail(console, status, ExitCode::kConfig);
  if (command.resume) {
    PosixFiles files;
    const absl::StatusOr<std::string> converted = FitState(files, setting.state_dir, config);
    if (!converted.ok()) return Fail(console, converted.status(), ExitCodeOf(converted.status()));
    if (!converted->empty()) console.Note(*converted);
  }
  return RunJob(command, std::move(setting), **signals, **dir, console, out);
}

ExitCode RunTrain(const TrainCommand& command, Console& console, std::ostream& out) {
  const auto config = JobOf(command.config_file, *command.fields, FilesOf::kThisMachine, console);
  if (!config.ok()) return Fail(console, config.status(), ExitCode::kConfig);
  return RunTrain(command, *config, console, out);
}

}  // namespace thinwire
