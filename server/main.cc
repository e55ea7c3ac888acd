// server: one daemon of a job. It reads its configuration, wires, listens, and stops in order at
// SIGTERM or SIGINT.
#include <glog/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/codec/table.h"
#include "common/huge_page_arena.h"
#include "proto/config.pb.h"
#include "proto/config_check.h"
#include "proto/config_text.h"
#include "server/edge/convert_config.h"
#include "server/edge/job.h"
#include "server/edge/listener.h"

namespace {

// What a shell script can tell apart (sysexits.h).
constexpr int kUsageError = 64;
constexpr int kUnavailable = 69;
constexpr int kConfigError = 78;

constexpr absl::Duration kStopGrace = absl::Seconds(5);

int ExitCodeOf(const absl::Status& status) {
  return absl::IsUnavailable(status) ? kUnavailable : kConfigError;
}

int Complain(const absl::Status& status) {
  std::cerr << "server: " << status.message() << std::endl;
  return ExitCodeOf(status);
}

std::string VersionText() {
  std::string text = "thinwire server\ncodecs:";
  for (std::string_view codec : thinwire::CodecNames()) text.append(" ").append(codec);
  return text;
}

// Without credentials whoever reaches the port can read and change the model.
absl::Status CheckExposure(const thinwire::ServerConfig& config) {
  if (thinwire::IsLoopback(config.listen())) return absl::OkStatus();
  if (config.insecure()) {
    LOG(WARNING) << "INSECURE: listening on " << config.listen()
                 << " without credentials: whoever reaches this port can read and change the model";
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("field \"listen\": " + config.listen() +
                                    " can be reached from other machines, and this server has no "
                                    "credentials; listen on 127.0.0.1, or set "
                                    "insecure: true where nobody else reaches the network");
}

// Takes SIGTERM and SIGINT for itself from the beginning, so that neither kills a server that is
// just starting.
class StopSignals {
 public:
  // Returns at the first signal, also one that came before.
  void Wait() {
    signals_.async_wait([](const boost::system::error_code&, int signal) {
      LOG(INFO) << "signal " << signal << ": stopping";
    });
    io_.run();
  }

 private:
  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_, SIGTERM, SIGINT};
};

absl::Status Serve(const thinwire::ServerConfig& config) {
  absl::Status status = CheckExposure(config);
  if (!status.ok()) return status;
  StopSignals signals;
  thinwire::SteadyClock clock;
  // Never destroyed: a thread of gRPC may release masters that it has sent after this function
  // returns.
  static thinwire::HugePageArena& arena = *new thinwire::HugePageArena;
  const thinwire::Epoch epoch{static_cast<uint64_t>(absl::GetCurrentTimeNanos())};
  auto job = thinwire::MakeJob(config, epoch, clock, &arena);
  if (!job.ok()) return job.status();
  auto listener = thinwire::Listener::Start(**job, config.listen());
  if (!listener.ok()) return listener.status();
  const absl::Duration lease = absl::Seconds(config.consistency().lease_seconds());
  (*job)->StartTicking(std::min(absl::Milliseconds(100), lease / 10));
  LOG(INFO) << "server " << config.server() << " of " << config.servers() << ", job "
            << config.job() << ", epoch " << epoch << ", " << config.ShortDebugString();
  std::cout << "listening " << (*listener)->address() << std::endl;

  signals.Wait();
  absl::Notification stopped;
  (*job)->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  (*listener)->Stop(kStopGrace);
  LOG(INFO) << "stopped";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app(
      "thinwire server: holds shards of a model's parameters and applies the workers' updates.");
  app.footer(
      "Example: server --config configs/server.textproto\n"
      "It prints \"listening HOST:PORT\" when it is ready, and stops in order at SIGTERM.");
  app.set_version_flag("--version", VersionText());
  std::string path;
  app.add_option("--config", path, "a text-format ServerConfig (proto/config.proto)")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  const absl::StatusOr<thinwire::ServerConfig> config =
      thinwire::ReadConfig<thinwire::ServerConfig>(path);
  if (!config.ok()) return Complain(config.status());
  // Both are settings of the whole process, so they are made here.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const absl::Status status = Serve(*config);
  return status.ok() ? 0 : Complain(status);
}
