// thinwire: the command-line program that trains on this machine, shows job files and checkpoints,
// and makes certificates.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "cli/certs_command.h"
#include "cli/checkpoint_command.h"
#include "cli/completion.h"
#include "cli/config_command.h"
#include "cli/doctor/doctor_command.h"
#include "cli/drain_command.h"
#include "cli/evaluate_command.h"
#include "cli/experiment_command.h"
#include "cli/launch_command.h"
#include "cli/scale_command.h"
#include "cli/status_command.h"
#include "cli/terminal/console.h"
#include "cli/trace_command.h"
#include "cli/train_command.h"
#include "common/exit_code.h"
#include "common/text/did_you_mean.h"
#include "common/version/version.h"
#include "config/field_flags.h"
#include "config/fields.h"
#include "config/help.h"
#include "config/man_page.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire train --config job.textproto --output model.safetensors\n"
    "  thinwire launch --config job.textproto --hosts hosts.txt --credentials_from ca\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire status --addresses a:7000,b:7000 --watch\n"
    "  thinwire scale --addresses a:7000,b:7000 --workers 8\n"
    "  thinwire certs init ca\n"
    "  thinwire experiment run experiments/staleness.textproto --quick\n"
    "  thinwire help train\n"
    "Environment: NO_COLOR switches colors off, TMPDIR is the folder of temporary files.\n"
    "Exit codes: 0 good, 64 usage, 69 unavailable, 75 terminated, 78 configuration, 130 "
    "interrupted.";

constexpr char kTrainExamples[] =
    "Examples:\n"
    "  thinwire train --config examples/fashion_mnist.textproto\n"
    "  thinwire train --config job.textproto --workers 8 --push topk --density 0.01\n"
    "  thinwire train --config job.textproto --mode ssp --slack 3 --report run.json\n"
    "  thinwire train --config job.textproto --durability log --state_dir state\n"
    "  thinwire train --model softmax --workers 2 --straggler 1:50ms\n"
    "  thinwire train --config job.textproto --output model.safetensors --keep best";

constexpr char kEvaluateExamples[] =
    "Examples:\n"
    "  thinwire evaluate --config job.textproto --model model.safetensors\n"
    "  thinwire evaluate --config job.textproto --model m.safetensors --data_dir /data";

// The fields of the job file that the evaluation of a model uses. The field model has no flag,
// because --model is the model file.
const std::vector<std::string_view> kFieldsOfEvaluate = {
    "model_file",    "dataset",   "data_dir", "train_examples",
    "test_examples", "precision", "device",   "threads"};

constexpr char kConfigExamples[] =
    "Examples:\n"
    "  thinwire config check examples/*.textproto\n"
    "  thinwire config check job.textproto --state_dir /var/lib/thinwire\n"
    "  thinwire config show examples/fashion_mnist.textproto";

constexpr char kCheckpointExamples[] =
    "Examples:\n"
    "  thinwire checkpoint list state\n"
    "  thinwire checkpoint verify state\n"
    "  thinwire checkpoint export state --out model.safetensors\n"
    "  thinwire checkpoint import --config job.textproto --from model.safetensors --state_dir "
    "state";

constexpr char kScaleExamples[] =
    "Examples:\n"
    "  thinwire scale --addresses a:7000,b:7000 --workers 8\n"
    "The lead, the first address, announces the step from which on the examples are dealt among "
    "the "
    "new set of workers. `thinwire train` starts added workers by itself; elsewhere start them "
    "with "
    "worker --worker 6. Removed workers finish their step, leave and exit with code 0.";

constexpr char kTraceExamples[] =
    "Examples:\n"
    "  thinwire trace merge job.json server-0.json worker-0.json worker-1.json";

constexpr char kCertsExamples[] =
    "Examples:\n"
    "  thinwire certs init ca\n"
    "  thinwire certs issue ca --role server --job train --server 0 --out certs/server-0\n"
    "  thinwire certs issue ca --role worker --job train --worker 3 --out certs/worker-3\n"
    "  thinwire certs issue ca --role viewer --job train --days 7 --out certs/viewer\n"
    "  thinwire certs show certs/worker-3";

constexpr char kCompletionExamples[] =
    "Examples:\n"
    "  thinwire completion bash > ~/.local/share/bash-completion/completions/thinwire\n"
    "  thinwire completion zsh > ~/.zfunc/_thinwire\n"
    "  source <(thinwire completion bash)";

ConsoleOptions OptionsOf(int file) {
  ConsoleOptions options;
  options.terminal = isatty(file) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  options.columns = std::max<size_t>(2, TerminalColumns(file));
  return options;
}

std::string TempParent() {
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

// Returns the subcommand of APP that NAME calls. Errors: InvalidArgument with the names of all
// subcommands.
absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
    names.push_back(command->get_name());
  }
  return UnknownWord("command", name, std::vector<std::string_view>(names.begin(), names.end()));
}

// Adds the flags of `thinwire train` that `thinwire launch` has too.
void AddRunFlags(CLI::App* train, TrainCommand& command) {
  train
      ->add_option(
          "--config", command.config_file,
          "The job file (proto/job.proto in text format). The flags below replace its fields")
      ->type_name("FILE")
      ->envname("THINWIRE_CONFIG");
  train
      ->add_option("--bin_dir", command.bin_dir,
                   "The folder of the programs server and worker. Default: beside this program")
      ->type_name("DIR")
      ->envname("THINWIRE_BIN_DIR");
  train
      ->add_option("--state_dir", command.state_dir,
                   "With durability: checkpoint or log, the folder in which the servers keep their "
                   "state. It "
                   "must be empty, except with --resume. Default: a temporary folder")
      ->type_name("DIR")
      ->envname("THINWIRE_STATE_DIR");
  train
      ->add_flag(
          "--resume", command.resume,
          "Goes on with the run in --state_dir. The job must be the same, except for the task "
          "(such as --epochs), --servers and --shard_size")
      ->envname("THINWIRE_RESUME");
  train
      ->add_option("--restarts", command.restarts,
                   "How many processes of the run are started again if they die: workers, and with "
                   "durability: checkpoint or log servers. Default: 3")
      ->type_name("COUNT")
      ->envname("THINWIRE_RESTARTS");
  train->add_flag("--verbose", command.verbose, "Shows all settings of the job at the start")
      ->envname("THINWIRE_VERBOSE");
  CLI::Option* output =
      train
          ->add_option("--output", command.output.path,
                       "The file that gets the trained model, as safetensors with the names of "
                       "PyTorch's state_dict. Without it, no model is written")
          ->type_name("FILE")
          ->envname("THINWIRE_OUTPUT");
  train
      ->add_option("--keep", command.output.keep,
                   "The parameters that --output gets: the final ones, or those with the highest "
                   "test accuracy at the end of an epoch. Default: last")
      ->type_name("last|best")
      ->check(CLI::IsMember({"last", "best"}))
      ->needs(output)
      ->envname("THINWIRE_KEEP");
  train
      ->add_option("--admin", command.admin,
                   "The host:port of a status page of the run, with metrics, in plaintext. Port 0 "
                   "takes a free port. Default: none")
      ->type_name("ADDRESS")
      ->envname("THINWIRE_ADMIN");
  train
      ->add_option("--tensorboard", command.tensorboard,
                   "The folder for TensorBoard's event files of the run. Default: none")
      ->type_name("DIR")
      ->envname("THINWIRE_TENSORBOARD");
  train->allow_extras();  // CheckNoExtras() reports unknown arguments
}

CLI::App* AddTrain(CLI::App& app, TrainCommand& command) {
  CLI::App* train = app.add_subcommand("train", "Trains with servers and workers on this machine");
  AddRunFlags(train, command);
  train
      ->add_option("--trace", command.trace,
                   "The file for a trace of all processes, for https://ui.perfetto.dev. Default: "
                   "none")
      ->type_name("FILE")
      ->envname("THINWIRE_TRACE");
  train->footer(kTrainExamples);
  return train;
}

CLI::App* AddLaunch(CLI::App& app, LaunchCommand& command) {
  CLI::App* launch =
      app.add_subcommand("launch", "Trains with servers and workers on other machines, over ssh");
  AddRunFlags(launch, command.run);
  AddLaunchFlags(*launch, command);
  return launch;
}

CLI::App* AddEvaluate(CLI::App& app, EvaluateCommand& command) {
  CLI::App* evaluate =
      app.add_subcommand("evaluate", "Prints the test accuracy and the test loss of a model file");
  evaluate
      ->add_option("--config", command.config_file,
                   "The job file of the training. The flags below replace its fields")
      ->type_name("FILE")
      ->envname("THINWIRE_CONFIG");
  evaluate->add_option("--model", command.model, "The model file, a file of train --output")
      ->type_name("FILE")
      ->required();
  evaluate
      ->add_option("--bin_dir", command.bin_dir,
                   "The folder of the programs server and worker. Default: beside this program")
      ->type_name("DIR")
      ->envname("THINWIRE_BIN_DIR");
  evaluate->allow_extras();  // CheckNoExtras() reports unknown arguments
  evaluate->footer(kEvaluateExamples);
  return evaluate;
}

CLI::App* AddScale(CLI::App& app, ScaleCommand& command) {
  CLI::App* scale = app.add_subcommand("scale", "Changes the number of workers of a running job");
  scale
      ->add_option("--addresses", command.addresses,
                   "host:port of every server, in the order of their numbers, separated by commas")
      ->type_name("LIST")
      ->required()
      ->envname("THINWIRE_ADDRESSES");
  scale
      ->add_option("--workers", command.workers,
                   "The new number of workers, from 1 to max_workers of the job")
      ->type_name("COUNT")
      ->required();
  scale
      ->add_option("--credentials", command.credentials,
                   "The folder with an operator's ca.pem, cert.pem and key.pem (thinwire certs), "
                   "for servers with mutual TLS")
      ->type_name("DIR")
      ->envname("THINWIRE_CREDENTIALS");
  scale->footer(kScaleExamples);
  return scale;
}

struct ConfigCommand {
  CLI::App* check = nullptr;
  CLI::App* show = nullptr;
  std::vector<std::string> files;
  std::string state_dir;
  std::string file;
};

void AddConfig(CLI::App& app, ConfigCommand& command) {
  CLI::App* config = app.add_subcommand("config", "Checks and shows job files");
  config->require_subcommand(1);
  config->footer(kConfigExamples);
  command.check = config->add_subcommand("check", "Reports every problem of job files");
  command.check->add_option("FILE", command.files, "Job files")->required();
  command.check
      ->add_option("--state_dir", command.state_dir,
                   "The folder in which servers are to keep their state. With durability: log, "
                   "measures its disk and warns if it is slower than a network of 1 Gbit/s")
      ->type_name("DIR");
  command.show =
      config->add_subcommand("show", "Prints the effective job: all settings, with their defaults");
  command.show->add_option("FILE", command.file, "A job file")->required();
}

struct CheckpointCommand {
  CLI::App* list = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* verify = nullptr;
  CLI::App* export_model = nullptr;
  CLI::App* import_state = nullptr;
  std::string dir;
  std::string out;
  std::string config_file;
  std::string source;
};

void AddCheckpoint(CLI::App& app, CheckpointCommand& command) {
  CLI::App* checkpoint = app.add_subcommand(
      "checkpoint", "Shows, checks, exports and imports the checkpoints of a job");
  checkpoint->require_subcommand(1);
  checkpoint->footer(kCheckpointExamples);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* added = checkpoint->add_subcommand(name, help);
    added->add_option("DIR", command.dir, "The state directory of the job")->required();
    return added;
  };
  command.list = add("list", "Lists all checkpoints");
  command.inspect = add("inspect", "Shows the contents of each server's newest checkpoint");
  command.verify = add("verify", "Reads and checks every file of all checkpoints");
  command.export_model = add("export", "Writes the parameters of the newest checkpoints to a file");
  command.export_model->add_option("--out", command.out, "The safetensors file to write")
      ->type_name("FILE")
      ->required();
  command.import_state = checkpoint->add_subcommand(
      "import", "Makes a state directory, from which train --resume goes on");
  command.import_state->add_option("--config", command.config_file, "The job file")
      ->type_name("FILE")
      ->required();
  command.import_state
      ->add_option("--from", command.source,
                   "A state directory of the job with any number of servers, or a model file of "
                   "train --output or checkpoint export")
      ->type_name("SOURCE")
      ->required();
  command.import_state
      ->add_option("--state_dir", command.dir, "The folder to create. It must be empty or absent")
      ->type_name("DIR")
      ->required();
}

// Runs the subcommand of COMMAND that was given. Returns nullopt if none was.
std::optional<ExitCode> RunCheckpoint(const CheckpointCommand& command) {
  PosixFiles files;
  const std::string& dir = command.dir;
  if (command.list->parsed()) return PrintCheckpoints(files, dir, std::cout, std::cerr);
  if (command.inspect->parsed()) return InspectCheckpoints(files, dir, std::cout, std::cerr);
  if (command.verify->parsed()) return VerifyCheckpoints(files, dir, std::cout, std::cerr);
  if (command.import_state->parsed()) {
    return ImportCheckpoint(files, command.config_file, command.source, dir, std::cout, std::cerr);
  }
  if (!command.export_model->parsed()) return std::nullopt;
  return ExportCheckpoint(files, dir, command.out, std::cout, std::cerr);
}

struct CertsCommand {
  CLI::App* init = nullptr;
  CLI::App* issue = nullptr;
  CLI::App* show = nullptr;
  std::string path;
  bool force = false;
  IssueOptions options;
};

void AddCerts(CLI::App& app, CertsCommand& command) {
  CLI::App* certs = app.add_subcommand("certs", "Makes and shows certificates for mutual TLS");
  certs->require_subcommand(1);
  certs->footer(kCertsExamples);
  command.init = certs->add_subcommand("init", "Makes an authority, which issues certificates");
  command.init->add_option("DIR", command.path, "The folder of the authority")->required();
  command.init->add_flag("--force", command.force, "Replaces an existing authority");
  IssueOptions& options = command.options;
  command.issue = certs->add_subcommand("issue", "Makes a key and a certificate for one process");
  command.issue->add_option("DIR", options.authority_dir, "The folder of the authority")
      ->required();
  command.issue->add_option("--role", options.role, "What the process may do")
      ->type_name("server|worker|operator|viewer")
      ->check(CLI::IsMember({"server", "worker", "operator", "viewer"}))
      ->required();
  command.issue->add_option("--job", options.job, "The name of the job, as in the job file")
      ->type_name("NAME")
      ->required();
  command.issue->add_option("--server", options.server, "The number of the server")
      ->type_name("NUMBER");
  command.issue
      ->add_option("--worker", options.worker,
                   "The number of the worker. Without it, the certificate is good for every worker "
                   "of the job")
      ->type_name("NUMBER");
  command.issue->add_option("--days", options.days, "The validity in days, from now. Default: 90")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 3650));
  command.issue->add_option("--out", options.out, "The credentials folder to write")
      ->type_name("DIR")
      ->required();
  command.issue->add_flag("--force", options.force,
                          "Replaces existing files. Running processes read them within seconds");
  command.show = certs->add_subcommand("show", "Prints the facts of certificates");
  command.show->add_option("PATH", command.path, "A certificate file, or a folder")->required();
}

// Runs the subcommand of COMMAND that was given. Returns nullopt if none was.
std::optional<ExitCode> RunCerts(const CertsCommand& command) {
  const absl::Time now = absl::Now();
  if (command.init->parsed()) {
    return InitAuthority(command.path, command.force, now, std::cout, std::cerr);
  }
  if (command.issue->parsed()) {
    return IssueCredentials(command.options, now, std::cout, std::cerr);
  }
  if (!command.show->parsed()) return std::nullopt;
  return ShowCertificates(command.path, now, std::cout, std::cerr);
}

struct TraceCommand {
  CLI::App* merge = nullptr;
  std::string out;
  std::vector<std::string> files;
};

void AddTrace(CLI::App& app, TraceCommand& command) {
  CLI::App* trace = app.add_subcommand("trace", "Combines the trace files of a job");
  trace->require_subcommand(1);
  trace->footer(kTraceExamples);
  command.merge =
      trace->add_subcommand("merge", "Writes one trace, with all times on the clock of server 0");
  command.merge->add_option("OUT", command.out, "The file to write")->required();
  command.merge->add_option("FILE", command.files, "The files of --trace of servers and workers")
      ->required();
}

struct CompletionCommand {
  CLI::App* app = nullptr;
  std::string shell;
};

void AddCompletion(CLI::App& app, CompletionCommand& command) {
  command.app = app.add_subcommand("completion", "Prints a completion script for a shell");
  command.app->add_option("SHELL", command.shell, "The shell: bash or zsh")
      ->type_name("bash|zsh")
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->required();
  command.app->footer(kCompletionExamples);
}

struct HelpCommand {
  CLI::App* app = nullptr;
  std::vector<std::string> words;
  bool man = false;
};

void AddHelp(CLI::App& app, HelpCommand& command) {
  command.app = app.add_subcommand("help", "Prints the help of a command");
  command.app->add_option("COMMAND", command.words, "The command, such as train or config check");
  command.app->add_flag("--man", command.man, "Prints the manual page of the command");
}

// Prints the help, or the manual page if MAN is true, of APP or of the command that WORDS name, such
// as {"config", "check"}.
ExitCode Help(const CLI::App& app, const std::vector<std::string>& words, bool man,
              Console& console) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const absl::StatusOr<const CLI::App*> found = FindCommand(*command, word);
    if (!found.ok()) {
      console.Error(std::string(found.status().message()));
      return ExitCode::kUsage;
    }
    command = *found;
    name += " " + word;
  }
  if (man) {
    std::cout << ManPage(*command, app.get_name(), absl::Now()) << std::flush;
    return ExitCode::kOk;
  }
  // CLI::App::help would print the help of the parsed command, which is `help`.
  std::cout << command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal)
            << std::flush;
  return ExitCode::kOk;
}

// Removes the environment variables that would set flags or job fields in the servers and workers
// of the run. The job file of the run already contains all settings. In a server or worker, an
// inherited variable would override this file, and with it a flag of `thinwire train`.
void RemoveSettingsFromEnvironment() {
  for (const Field& field : LeafFields(*JobConfig::descriptor())) {
    unsetenv(EnvironmentName(field.name()).c_str());
  }
  for (const char* flag :
       {"config", "server", "worker", "addresses", "listen", "insecure", "credentials", "delay",
        "state_dir", "output", "keep", "admin", "tensorboard", "trace"}) {
    unsetenv(EnvironmentName(flag).c_str());
  }
}

ExitCode Train(const CLI::App& app, const FieldFlags& flags, const TrainCommand& command,
               Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobOf(command.config_file, flags, FilesOf::kThisMachine, console);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  RemoveSettingsFromEnvironment();
  return RunTrain(command, *config, console, std::cout);
}

ExitCode Launch(const CLI::App& app, const FieldFlags& flags, const LaunchCommand& command,
                Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobOf(command.run.config_file, flags, FilesOf::kOtherMachines, console);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  return RunLaunch(command, *config, console, std::cout);
}

ExitCode Evaluate(const CLI::App& app, const FieldFlags& flags, const EvaluateCommand& command,
                  Console& console) {
  if (const auto extras = CheckNoExtras(app); !extras.ok()) {
    console.Error(std::string(extras.message()));
    return ExitCode::kUsage;
  }
  const auto config = JobToEvaluate(command.config_file, flags);
  if (!config.ok()) {
    console.Error(std::string(config.status().message()));
    return ExitCode::kConfig;
  }
  RemoveSettingsFromEnvironment();
  return RunEvaluate(command, *config, console, std::cout);
}

// Opens /dev/null in place of standard input, output or error if it is closed. Otherwise, a file or
// socket that is opened later would get the file descriptor of standard input, output or error.
void FillStandardFiles() {
  int file = 0;
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDONLY);
  if (file >= 0) close(file);
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("thinwire: a sharded parameter server for thin wires.", "thinwire");
  SetHelpFormat(app, TerminalColumns(STDOUT_FILENO));
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText("thinwire"),
                       "Tells the version, the git revision, the codecs and the GPUs");
  app.footer(kExamples);
  TrainCommand train;
  train.self = "/proc/self/exe";
  train.temp_parent = TempParent();
  CLI::App* train_app = AddTrain(app, train);
  const FieldFlags flags(*train_app);
  LaunchCommand launch;
  launch.run.self = "/proc/self/exe";
  launch.run.temp_parent = TempParent();
  CLI::App* launch_app = AddLaunch(app, launch);
  const FieldFlags launch_flags(*launch_app);
  EvaluateCommand evaluate{.config_file = "",
                           .model = "",
                           .bin_dir = "",
                           .self = "/proc/self/exe",
                           .temp_parent = TempParent()};
  CLI::App* evaluate_app = AddEvaluate(app, evaluate);
  const FieldFlags evaluate_flags(*evaluate_app, kFieldsOfEvaluate);
  ScaleCommand scale;
  CLI::App* scale_app = AddScale(app, scale);
  StatusCommand status;
  status.redraws = isatty(STDOUT_FILENO) == 1;
  CLI::App* status_app = AddStatus(app, status);
  DrainCommand drain;
  CLI::App* drain_app = AddDrain(app, drain);
  DoctorCommand doctor;
  CLI::App* doctor_app = AddDoctor(app, doctor);
  ConfigCommand config;
  AddConfig(app, config);
  CheckpointCommand checkpoint;
  AddCheckpoint(app, checkpoint);
  CertsCommand certs;
  AddCerts(app, certs);
  TraceCommand trace;
  AddTrace(app, trace);
  ExperimentCommand experiment;
  experiment.self = "/proc/self/exe";
  AddExperiment(app, experiment);
  CompletionCommand completion;
  AddCompletion(app, completion);
  HelpCommand help;
  AddHelp(app, help);

  Console console(std::cerr, OptionsOf(STDERR_FILENO));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports an unknown command only as a missing command.
    if (argc > 1 && argv[1][0] != '-') {
      if (const auto found = FindCommand(app, argv[1]); !found.ok()) {
        console.Error(std::string(found.status().message()));
        return ExitCode::kUsage;
      }
    }
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  if (config.check->parsed())
    return CheckConfigFiles(config.files, config.state_dir, std::cout, std::cerr);
  if (help.app->parsed()) return Help(app, help.words, help.man, console);
  if (completion.app->parsed()) {
    std::cout << (completion.shell == "bash" ? BashCompletion(app) : ZshCompletion(app))
              << std::flush;
    return ExitCode::kOk;
  }
  if (launch_app->parsed()) return Launch(*launch_app, launch_flags, launch, console);
  if (evaluate_app->parsed()) return Evaluate(*evaluate_app, evaluate_flags, evaluate, console);
  if (scale_app->parsed()) return RunScale(scale, console, std::cout);
  if (status_app->parsed()) return RunStatus(status, console, std::cout);
  if (drain_app->parsed()) return RunDrain(drain, console, std::cout);
  if (doctor_app->parsed()) return RunDoctor(doctor, console, std::cout);
  if (config.show->parsed()) return ShowConfigFile(config.file, std::cout, std::cerr);
  if (const auto code = RunCheckpoint(checkpoint)) return *code;
  if (const auto code = RunCerts(certs)) return *code;
  if (trace.merge->parsed()) return RunTraceMerge(trace.files, trace.out, std::cout, std::cerr);
  if (experiment.compare->parsed()) return RunCompare(experiment, console, std::cout);
  if (experiment.run->parsed() || experiment.replay->parsed()) {
    RemoveSettingsFromEnvironment();
    return RunExperiment(experiment, console);
  }
  return Train(*train_app, flags, train, console);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  return static_cast<int>(thinwire::Main(argc, argv));
}
