#include "cli/evaluate_command.h"

#include <google/protobuf/text_format.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "common/base/status_macros.h"
#include "config/command_flags.h"
#include "config/job.h"
#include "config/job_text.h"
#include "proto/worker_event.pb.h"
#include "proto/worker_event_json.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire evaluate --config job.textproto --model m.safetensors --data_dir /data";

// The fields of the job file that the evaluation of a model uses. The field model has no flag,
// because --model is the model file.
const std::vector<std::string_view> kFields = {"model_file",     "dataset",       "data_dir",
                                               "train_examples", "test_examples", "precision",
                                               "device",         "threads"};

constexpr char kName[] = "worker";

// The reports of a worker process, and its end.
struct Outcome {
  std::optional<WorkerEvent::Done> done;
  std::string error;  // the reported error; "" if none
  ExitStatus exit;
  int signal = 0;  // SIGINT or SIGTERM if this process received it, else 0
};

void Record(const ProcessEvent& event, Outcome& outcome) {
  const auto reported = ParseWorkerEvent(event.text);
  if (!reported.ok()) return;
  if (reported->has_done()) outcome.done = reported->done();
  if (reported->has_error()) outcome.error = reported->error().message();
}

// Runs COMMAND until its end. A signal to this process ends the worker.
absl::StatusOr<Outcome> RunWorker(const std::vector<std::string>& command, Signals& signals,
                                  const TempDir& dir) {
  ProcessSet processes(signals, dir.path());
  RETURN_IF_ERROR(processes.Start(kName, command));
  Outcome outcome;
  while (processes.running(kName)) {
    for (const ProcessEvent& event : processes.Wait(absl::InfiniteDuration())) {
      switch (event.kind) {
        case ProcessEvent::Kind::kLine:
          Record(event, outcome);
          break;
        case ProcessEvent::Kind::kLog:
          break;
        case ProcessEvent::Kind::kExit:
          outcome.exit = event.exit;
          break;
        case ProcessEvent::Kind::kSignal:
          outcome.signal = event.signal;
          processes.SignalAll(SIGKILL);
          break;
      }
    }
  }
  if (outcome.error.empty()) outcome.error = processes.LastLogLine(kName);
  return outcome;
}

absl::StatusOr<Outcome> EvaluateInWorker(const EvaluateCommand& command, const JobConfig& config) {
  ASSIGN_OR_RETURN(const Programs programs, FindPrograms(command.self, command.bin_dir));
  ASSIGN_OR_RETURN(const std::unique_ptr<Signals> signals, Signals::Block());
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> dir, TempDir::Make(command.temp_parent));
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  RETURN_IF_ERROR(dir->WriteFile("job.textproto", text));
  return RunWorker(EvaluatorCommand(programs, dir->PathOf("job.textproto"), command.model),
                   *signals, *dir);
}

}  // namespace

CLI::App* AddEvaluate(CLI::App& app, EvaluateCommand& command) {
  CLI::App* evaluate = CommandFlags(app).AddSubcommand(
      "evaluate", "Prints the test accuracy and the test loss of a model file");
  CommandFlags flags(*evaluate);
  flags
      .Add("--config", command.config_file,
           "The job file of the training. The flags below replace its fields")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG");
  flags.Add("--model", command.model, "The model file, a file of train --output")
      .Type("FILE")
      .Required();
  flags
      .Add("--bin_dir", command.bin_dir,
           "The folder of the programs server and worker. Default: beside this program")
      .Type("DIR")
      .Environment("THINWIRE_BIN_DIR");
  flags.AllowExtras();  // CheckNoExtras() reports unknown arguments
  flags.Footer(kExamples);
  command.fields.emplace(*evaluate, kFields);
  return evaluate;
}

absl::StatusOr<JobConfig> JobToEvaluate(const std::string& config_file, const FieldFlags& flags) {
  JobText text;
  if (!config_file.empty()) {
    ASSIGN_OR_RETURN(text, ReadJobFile(config_file));
  }
  RETURN_IF_ERROR(flags.Apply(text.config, text.places));
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  const std::vector<std::string> missing = MissingFiles(job.task, text.places);
  if (!missing.empty()) return absl::NotFoundError(absl::StrJoin(missing, "\n"));
  return text.config;
}

ExitCode RunEvaluate(const EvaluateCommand& command, const JobConfig& config, Console& console,
                     std::ostream& out) {
  const absl::StatusOr<Outcome> outcome = EvaluateInWorker(command, config);
  if (!outcome.ok()) return Fail(console, outcome.status(), ExitCode::kUnavailable);
  if (outcome->signal != 0) {
    return outcome->signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
  }
  if (!outcome->exit.ok() || !outcome->done) {
    console.Error(outcome->error.empty() ? absl::StrCat("worker: ", outcome->exit.ToString())
                                         : outcome->error);
    const bool has_code = outcome->exit.signal == 0 && outcome->exit.code != 0;
    return has_code ? static_cast<ExitCode>(outcome->exit.code) : ExitCode::kUnavailable;
  }
  const WorkerEvent::Done& done = *outcome->done;
  if (done.has_final_test_accuracy()) {
    out << absl::StrFormat("test accuracy %.4f\n", done.final_test_accuracy());
  }
  out << absl::StrFormat("test loss %.4f\n", done.final_test_loss()) << std::flush;
  if (out) return ExitCode::kOk;
  console.Error("standard output: cannot be written");
  return ExitCode::kUnavailable;
}

ExitCode RunEvaluate(const EvaluateCommand& command, Console& console, std::ostream& out) {
  const auto config = JobToEvaluate(command.config_file, *command.fields);
  if (!config.ok()) return Fail(console, config.status(), ExitCode::kConfig);
  return RunEvaluate(command, *config, console, out);
}

}  // namespace thinwire
