// worker: the program of a worker process. It reads the job file, loads the data and the model, and
// trains with the servers. Events are written to standard output (docs/training.md), and messages
// to standard error. Exit codes: common/base/exit_code.h.
#include <glog/logging.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/exit_code.h"
#include "common/base/process_setup.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "common/time/unix_clock.h"
#include "common/version/version.h"
#include "config/command_flags.h"
#include "config/completion.h"
#include "config/field_flags.h"
#include "config/help.h"
#include "config/man_page.h"
#include "worker/models/factory.h"
#include "worker/process/termination.h"
#include "worker/process/worker_flags.h"
#include "worker/process/worker_process.h"

namespace {

// The fields of the job file that may differ between workers. Each field has a command-line flag.
const std::vector<std::string_view> kFieldsPerProcess = {
    "device", "threads", "data_dir", "model_file", "precision", "silence_seconds"};

}  // namespace

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  thinwire::IgnoreBrokenPipes();
  thinwire::SkipDeadlockSearch();
  thinwire::Termination termination;
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  thinwire::Program program("thinwire worker: computes gradients and pushes them to the servers.");
  CLI::App& app = program.app();
  thinwire::CommandFlags command(app);
  command.Footer(std::string("Example:\n") +
                 "  worker --config job.textproto --worker 3 --addresses a:7000,b:7000\n"
                 "  worker --config job.textproto --addresses a:7000 --output m.safetensors\n"
                 "  worker --config job.textproto --evaluate m.safetensors\n" +
                 thinwire::ExitCodesHelp());
  thinwire::SetHelpFormat(app, thinwire::TerminalColumns(STDOUT_FILENO));
  thinwire::WorkerFlags flags;
  thinwire::AddFlags(command, flags);
  const thinwire::FieldFlags field_flags(app, kFieldsPerProcess);
  thinwire::AddManFlag(app, "thinwire-worker");
  thinwire::AddCompletionFlag(app, "thinwire-worker");
  command.AddVersion(thinwire::VersionText("thinwire worker") + "\n" + thinwire::TorchVersion());
  const auto missing = [&flags] {
    return flags.evaluate.empty() && flags.connection.addresses.empty() ? "--addresses" : "";
  };
  if (const std::optional<int> code = program.Parse(argc, argv, missing); code.has_value())
    return *code;
  thinwire::SteadyClock clock;
  thinwire::UnixClock unix_clock;
  thinwire::Threads threads;
  return static_cast<int>(
      thinwire::RunWorker(flags, field_flags, termination, threads, clock, unix_clock));
}
