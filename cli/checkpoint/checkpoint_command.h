// `thinwire checkpoint`: shows, checks, exports, imports and restores the checkpoints of a state
// directory, makes and restores those of a running job (checkpoint_calls.h), and mirrors them in a
// bucket (mirror.h, fetch.h).
//
//   DIR/server-0   DIR/server-1   ...   one folder per server (server/durable/checkpoint.h)
//
// All functions print results to the stream `out` and errors, one sentence each, to `err`. They
// return kConfig if a file is missing or damaged.
#ifndef THINWIRE_CLI_CHECKPOINT_CHECKPOINT_COMMAND_H_
#define THINWIRE_CLI_CHECKPOINT_CHECKPOINT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "cli/checkpoint/checkpoint_calls.h"
#include "common/base/exit_code.h"
#include "server/durable/files.h"

namespace CLI {
class App;
}

namespace thinwire {

// What `thinwire checkpoint export` writes.
struct ExportOptions {
  bool masters = false;          // the parameters even if there are averages of them
  std::optional<uint64_t> step;  // of the checkpoints of this step; nullopt: of the newest ones
};

struct CheckpointCommand {
  // The subcommands. AddCheckpoint sets them.
  CLI::App* list = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* verify = nullptr;
  CLI::App* export_model = nullptr;
  CLI::App* import_state = nullptr;
  CLI::App* restore = nullptr;
  CLI::App* now = nullptr;
  CLI::App* mirror = nullptr;
  CLI::App* fetch = nullptr;
  std::string dir;
  std::string out;                 // of export
  ExportOptions exported;          // of export
  std::string config_file;         // of import
  std::string source;              // of import
  uint64_t step = 0;               // of restore
  CheckpointCalls now_calls;       // of now
  CheckpointCalls restore_calls;   // of restore without `dir`
  std::string url;                 // of mirror and fetch
  double every = 0;                // seconds, of mirror; 0: once
  std::optional<uint32_t> server;  // of fetch; nullopt: all servers
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddCheckpoint(CLI::App& app, CheckpointCommand& command);

// Runs the subcommand of the command line.
ExitCode RunCheckpoint(const CheckpointCommand& command, std::ostream& out, std::ostream& err);

// Prints a table with one line per checkpoint.
ExitCode PrintCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                          std::ostream& err);

// Prints the job, its tensors, shards and workers, as the newest checkpoint of each server has
// them.
ExitCode InspectCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                            std::ostream& err);

// Reads and checks every file of every checkpoint. Prints one line per good checkpoint.
ExitCode VerifyCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                           std::ostream& err);

// Writes the parameters of checkpoints that belong together (ChooseCheckpoints, saved_job.h) to the
// safetensors file FILE, one tensor of the model after the other. In a job with a parameter_average
// these are the averages, unless OPTIONS says otherwise. Prints a warning to `err` if the shards
// have different steps.
ExitCode ExportCheckpoint(Files& files, const std::string& dir, const std::string& file,
                          const ExportOptions& options, std::ostream& out, std::ostream& err);

// Makes DIR the state directory of the job in CONFIG_FILE, with the state in SOURCE (ImportState,
// state_dir.h).
ExitCode ImportCheckpoint(Files& files, const std::string& config_file, const std::string& source,
                          const std::string& dir, std::ostream& out, std::ostream& err);

// Makes checkpoints of STEP the newest state of the job in DIR (RestoreSavedJob, saved_job.h).
ExitCode RestoreCheckpoint(Files& files, const std::string& dir, uint64_t step, std::ostream& out,
                           std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_CHECKPOINT_COMMAND_H_
