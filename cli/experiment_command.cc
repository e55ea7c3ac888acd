#include "cli/experiment_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/process/command_lines.h"
#include "cli/terminal/table.h"
#include "common/base/status_macros.h"
#include "config/command_flags.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire experiment run experiments/staleness.textproto --out out/staleness\n"
    "  thinwire experiment run experiments/staleness.textproto --quick\n"
    "  thinwire experiment run experiments/agreement.textproto --out out/virtual\n"
    "  thinwire experiment run experiments/agreement.textproto --out out/real --real\n"
    "  thinwire experiment compare out/virtual out/real\n"
    "  thinwire experiment replay state --out out/replay --set learning_rate=0.01\n"
    "A run that was stopped goes on with the same command.";

// The runs of a case, one per seed.
struct CaseResults {
  std::vector<double> step_seconds;
  std::vector<double> qualities;                  // accuracies, or losses
  std::map<std::string, std::string> parameters;  // the checksum of the final parameters by seed
};

// The cases of a folder, in the order of its runs.csv.
struct FolderResults {
  std::string axes;     // the names of the axes
  std::string quality;  // "accuracy"; "loss" if the tests have no accuracy
  std::vector<std::string> names;
  std::map<std::string, CaseResults> cases;
};

// Returns the number of the column NAME. Errors: InvalidArgument if there is none.
absl::StatusOr<size_t> ColumnOf(const std::vector<std::string>& columns, const std::string& name,
                                const std::string& path) {
  const auto found = std::ranges::find(columns, name);
  if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
  return absl::InvalidArgumentError(
      absl::StrCat(path, ":1: no column ", name, " (expected the runs.csv of an experiment)"));
}

absl::StatusOr<FolderResults> ReadRuns(const std::string& folder) {
  const std::string path = folder + "/runs.csv";
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot be read (expected the folder of a finished experiment)"));
  }
  const std::vector<std::string> columns = absl::StrSplit(line, ',');
  ASSIGN_OR_RETURN(const size_t seed, ColumnOf(columns, "seed", path));
  ASSIGN_OR_RETURN(const size_t step, ColumnOf(columns, "median_step_seconds", path));
  ASSIGN_OR_RETURN(const size_t accuracy, ColumnOf(columns, "test_accuracy", path));
  ASSIGN_OR_RETURN(const size_t loss, ColumnOf(columns, "test_loss", path));
  ASSIGN_OR_RETURN(const size_t parameters, ColumnOf(columns, "parameters_crc", path));
  const auto axes_of = [&](const std::vector<std::string>& cells) {
    return absl::StrJoin(cells.begin() + 1, cells.begin() + static_cast<ptrdiff_t>(seed), ", ");
  };
  FolderResults results;
  results.axes = axes_of(columns);
  for (int number = 2; std::getline(in, line); ++number) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    double step_seconds = 0;
    double test_accuracy = 0;
    double test_loss = 0;
    if (cells.size() != columns.size() || !absl::SimpleAtod(cells[step], &step_seconds) ||
        !absl::SimpleAtod(cells[accuracy], &test_accuracy) ||
        !absl::SimpleAtod(cells[loss], &test_loss)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": wrong row (expected ",
                                                     columns.size(), " values, got \"", line,
                                                     "\")"));
    }
    const std::string name = axes_of(cells);
    const auto [found, added] = results.cases.try_emplace(name);
    if (added) results.names.push_back(name);
    found->second.step_seconds.push_back(step_seconds);
    results.quality = std::isnan(test_accuracy) ? "loss" : "accuracy";
    found->second.qualities.push_back(std::isnan(test_accuracy) ? test_loss : test_accuracy);
    found->second.parameters.emplace(cells[seed], cells[parameters]);
  }
  return results;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the standard deviation of a sample; 0 for one value.
double DeviationOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string QualityText(const std::vector<double>& values) {
  return absl::StrFormat("%.4f +- %.4f", MeanOf(values), DeviationOf(values));
}

// Returns for how many of the seeds that both cases have the final parameters are equal: "2 of 3".
std::string EqualText(const CaseResults& left, const CaseResults& right) {
  int equal = 0;
  int both = 0;
  for (const auto& [seed, checksum] : left.parameters) {
    const auto found = right.parameters.find(seed);
    if (found == right.parameters.end()) continue;
    ++both;
    if (found->second == checksum) ++equal;
  }
  return absl::StrCat(equal, " of ", both);
}

ExitCode StartLaboratory(const ExperimentCommand& command, Console& console) {
  const absl::StatusOr<std::string> laboratory = FindLaboratory(command.self, command.bin_dir);
  if (!laboratory.ok()) {
    console.Error(std::string(laboratory.status().message()));
    return ExitCode::kUnavailable;
  }
  std::vector<std::string> words = LaboratoryCommand(command, *laboratory);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(laboratory->c_str(), arguments.data());
  console.Error(absl::StrCat(*laboratory, ": cannot be started: ", strerror(errno)));
  return ExitCode::kUnavailable;
}

ExitCode Compare(const ExperimentCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<std::string> table = CompareRuns(command.virtual_dir, command.real_dir);
  if (!table.ok()) return Fail(console, table.status());
  out << *table << std::flush;
  if (!out) return Fail(console, absl::UnavailableError("standard output: cannot be written"));
  return ExitCode::kOk;
}

// Adds the flags of both subcommands that start the laboratory.
void AddLaboratoryFlags(CommandFlags& flags, ExperimentCommand& command) {
  flags
      .Add("--threads", command.threads,
           "The threads that compute gradients. The results do not depend on them. Default: "
           "one per processor core")
      .Type("COUNT");
  flags
      .Add("--bin_dir", command.bin_dir,
           "The folder of the program laboratory. Default: beside this program")
      .Type("DIR")
      .Environment("THINWIRE_BIN_DIR");
}

}  // namespace

CLI::App* AddExperiment(CLI::App& app, ExperimentCommand& command) {
  CLI::App* experiment = CommandFlags(app).AddSubcommand(
      "experiment", "Runs experiments in virtual time and compares their results");
  CommandFlags flags(*experiment);
  flags.RequireSubcommand();
  flags.Footer(kExamples);
  command.run =
      flags.AddSubcommand("run", "Runs an experiment and writes its tables and its report.html");
  CommandFlags run(*command.run);
  run.Add("FILE", command.file, "The experiment file (proto/experiment.proto)").Required();
  run.Add("--out", command.out, "The folder for the results. Default: out/NAME").Type("DIR");
  run.AddSwitch("--quick", command.quick, "Runs the small version that the file describes");
  run.AddSwitch("--real", command.real,
                "Runs real processes on this machine instead of simulated ones. Cases that "
                "only simulated machines can run are left out");
  run.Add("--only", command.only,
          "Leaves out the other settings of the axis. May be given several times")
      .Type("AXIS=SETTING");
  run.Add("--seeds", command.seeds, "The number of seeds. Default: that of the file").Type("COUNT");
  AddLaboratoryFlags(run, command);
  command.replay = flags.AddSubcommand(
      "replay", "Replays a recorded run of real processes, as it was and with changed settings");
  CommandFlags replay(*command.replay);
  replay
      .Add("STATE_DIR", command.state_dir,
           "The state directory of a run with durability: log and keep_log: true")
      .Required();
  replay.Add("--out", command.out, "The folder for the results. Default: out/replay").Type("DIR");
  replay
      .Add("--set", command.set,
           "A setting of the job in the changed run. May be given several times")
      .Type("FIELD=VALUE");
  replay.AddSwitch("--payloads", command.payloads,
                   "Keeps the recorded gradients. Only the servers are changed");
  AddLaboratoryFlags(replay, command);
  command.compare = flags.AddSubcommand(
      "compare", "Compares step time and accuracy of simulated and of real processes");
  CommandFlags compare(*command.compare);
  compare.Add("VIRTUAL", command.virtual_dir, "The folder of a run in virtual time").Required();
  compare.Add("REAL", command.real_dir, "The folder of a run with --real").Required();
  return experiment;
}

std::vector<std::string> LaboratoryCommand(const ExperimentCommand& command,
                                           const std::string& laboratory) {
  std::vector<std::string> words = {laboratory, "run", command.file};
  if (IsParsed(*command.replay)) words = {laboratory, "replay", command.state_dir};
  if (!command.out.empty()) words.insert(words.end(), {"--out", command.out});
  for (const std::string& change : command.set) words.insert(words.end(), {"--set", change});
  if (command.payloads) words.emplace_back("--payloads");
  if (command.quick) words.emplace_back("--quick");
  if (command.real) words.emplace_back("--real");
  for (const std::string& only : command.only) words.insert(words.end(), {"--only", only});
  if (command.seeds) words.insert(words.end(), {"--seeds", absl::StrCat(*command.seeds)});
  if (command.threads) words.insert(words.end(), {"--threads", absl::StrCat(*command.threads)});
  return words;
}

ExitCode RunExperiment(const ExperimentCommand& command, Console& console, std::ostream& out) {
  return IsParsed(*command.compare) ? Compare(command, console, out)
                                    : StartLaboratory(command, console);
}

absl::StatusOr<std::string> CompareRuns(const std::string& virtual_dir,
                                        const std::string& real_dir) {
  ASSIGN_OR_RETURN(const FolderResults simulated, ReadRuns(virtual_dir));
  ASSIGN_OR_RETURN(const FolderResults real, ReadRuns(real_dir));
  if (simulated.axes != real.axes) {
    return absl::InvalidArgumentError(absl::StrCat(real_dir,
                                                   ": another experiment (expected the axes \"",
                                                   simulated.axes, "\", got \"", real.axes, "\")"));
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : simulated.names) {
    const auto found = real.cases.find(name);
    if (found == real.cases.end()) continue;
    const CaseResults& left = simulated.cases.at(name);
    const CaseResults& right = found->second;
    const double left_step = MeanOf(left.step_seconds);
    const double right_step = MeanOf(right.step_seconds);
    rows.push_back({name, absl::StrFormat("%.2f", 1e3 * left_step),
                    absl::StrFormat("%.2f", 1e3 * right_step),
                    absl::StrFormat("%+.1f %%", 100 * (left_step / right_step - 1)),
                    QualityText(left.qualities), QualityText(right.qualities),
                    absl::StrFormat("%+.4f", MeanOf(left.qualities) - MeanOf(right.qualities)),
                    EqualText(left, right)});
  }
  if (rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(real_dir, ": no case of ", virtual_dir, " (expected at least 1, got 0)"));
  }
  const std::vector<std::string> columns = {simulated.axes,
                                            "virtual ms",
                                            "real ms",
                                            "difference",
                                            "virtual " + simulated.quality,
                                            "real " + real.quality,
                                            "difference",
                                            "equal parameters"};
  return TextTable(columns, rows);
}

}  // namespace thinwire
