// `thinwire evaluate`: prints the test accuracy, if the job has one, and the test loss of a model file. A worker process
// evaluates the model, so that this program needs no LibTorch (docs/decisions/0071).
#ifndef THINWIRE_CLI_EVALUATE_COMMAND_H_
#define THINWIRE_CLI_EVALUATE_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"
#include "config/field_flags.h"
#include "proto/job.pb.h"

namespace CLI {
class App;
}

namespace thinwire {

struct EvaluateCommand {
  std::string config_file;  // path of the job file; empty: the flags alone define the job
  std::string model;        // path of the model file
  std::string bin_dir;      // folder of the worker program; empty: see FindPrograms()
  std::string self;         // path of the thinwire program
  std::string temp_parent;  // folder in which the command creates its private folder
  std::optional<FieldFlags> fields = {};  // flags of the job's fields; set by AddEvaluate
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddEvaluate(CLI::App& app, EvaluateCommand& command);

// Reads the job file, applies the flags, and checks the job and that its files are on this machine.
// Errors: those of config/job_text.h and config/job.h.
absl::StatusOr<JobConfig> JobToEvaluate(const std::string& config_file, const FieldFlags& flags);

// Evaluates the model file. Prints the result to `out` and messages to `console`. Returns the exit
// code of the worker process. REQUIRES: CheckJob accepts `config`.
ExitCode RunEvaluate(const EvaluateCommand& command, const JobConfig& config, Console& console,
                     std::ostream& out);

// Runs the same with the job of the command line.
ExitCode RunEvaluate(const EvaluateCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_EVALUATE_COMMAND_H_
