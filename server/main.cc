// server: one server process of a job. It reads the job file, serves the job, and shuts down
// cleanly at a stop signal (common/base/process_setup.h).
#include <glog/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/process_setup.h"
#include "common/memory/huge_page_arena.h"
#include "common/time/clock.h"
#include "common/time/log_limit.h"
#include "common/time/unix_clock.h"
#include "common/version/version.h"
#include "config/command_flags.h"
#include "config/completion.h"
#include "config/help.h"
#include "config/man_page.h"
#include "server/process/process_flags.h"
#include "server/process/server_process.h"

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  thinwire::IgnoreBrokenPipes();
  thinwire::SkipDeadlockSearch();
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
  thinwire::AddCompletionFlag(app, "thinwire-server");
  command.AddVersion(thinwire::VersionText("thinwire server"));
  thinwire::ServerFlags flags;
  thinwire::AddFlags(command, flags);
  if (const std::optional<int> code = program.Parse(argc, argv); code.has_value()) return *code;
  gpr_set_log_function(LogGrpcLine);
  // Health checks and reflection are settings of the whole process.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  thinwire::SteadyClock clock;
  thinwire::UnixClock unix_clock;
  // Never destroyed, because a gRPC thread may release sent parameters after main() has returned.
  static thinwire::HugePageArena& memory = *new thinwire::HugePageArena;
  return static_cast<int>(thinwire::RunServer(flags, clock, unix_clock, memory));
}
