// `thinwire experiment`: runs experiments with the program laboratory, and compares the results of
// simulated and of real processes.
#ifndef THINWIRE_CLI_EXPERIMENT_COMMAND_H_
#define THINWIRE_CLI_EXPERIMENT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct ExperimentCommand {
  CLI::App* run = nullptr;
  CLI::App* replay = nullptr;
  CLI::App* compare = nullptr;
  std::string self;     // path of the thinwire program
  std::string bin_dir;  // folder of the program laboratory; empty: see FindLaboratory()
  std::string file;
  std::string out;
  std::string state_dir;
  std::vector<std::string> set;
  bool payloads = false;
  bool quick = false;
  bool real = false;
  std::vector<std::string> only;
  std::optional<uint32_t> seeds;
  std::optional<uint32_t> threads;
  std::string virtual_dir;
  std::string real_dir;
};

// Adds the command with its subcommands to APP. COMMAND must outlive APP.
CLI::App* AddExperiment(CLI::App& app, ExperimentCommand& command);

// Returns the command line of the program at the path LABORATORY that runs the experiment or the
// replay.
std::vector<std::string> LaboratoryCommand(const ExperimentCommand& command,
                                           const std::string& laboratory);

// Runs `thinwire experiment run`, `replay` or `compare`. `compare` prints the table of CompareRuns
// to OUT. The others replace this process by the laboratory, which thus receives the terminal's
// signals and gives its exit code (docs/decisions/0105); they return only if the laboratory cannot
// be started: kUnavailable.
ExitCode RunExperiment(const ExperimentCommand& command, Console& console, std::ostream& out);

// Returns a table of the cases that both folders have: step time and test accuracy of both, as
// means over the seeds, and the number of seeds with equal final parameters. Without accuracies, the
// table has the test losses. Errors: NotFound or InvalidArgument for a missing or wrong runs.csv.
absl::StatusOr<std::string> CompareRuns(const std::string& virtual_dir,
                                        const std::string& real_dir);

}  // namespace thinwire

#endif  // THINWIRE_CLI_EXPERIMENT_COMMAND_H_
