#include "cli/launch.h"

#include <unistd.h>

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/config_check.h"

namespace thinwire {
namespace {

absl::StatusOr<std::string> FindProgram(const std::string& folder, const std::string& name) {
  for (const std::string& path :
       {absl::StrCat(folder, "/", name, "/", name), absl::StrCat(folder, "/", name)}) {
    std::error_code ignored;
    if (access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, ignored))
      return path;
  }
  return absl::NotFoundError(absl::StrCat("no program ", name, " in ", folder, ": want ", folder,
                                          "/", name, "/", name, " or ", folder, "/", name,
                                          "; --bin_dir says where it is"));
}

}  // namespace

absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir) {
  std::string folder = bin_dir;
  if (folder.empty()) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(self, error);
    if (error) return absl::NotFoundError(absl::StrCat(self, ": ", error.message()));
    folder = real.parent_path().string();
    if (!FindProgram(folder, "server").ok()) folder = real.parent_path().parent_path().string();
  }
  const auto server = FindProgram(folder, "server");
  if (!server.ok()) return server.status();
  const auto worker = FindProgram(folder, "worker");
  if (!worker.ok()) return worker.status();
  return Programs{*server, *worker};
}

ServerConfig ServerConfigOf(const TrainConfig& train, ServerId server) {
  ServerConfig config;
  config.set_server(server.value);
  config.set_servers(train.servers());
  config.set_listen("127.0.0.1:0");
  *config.mutable_consistency() = train.consistency();
  *config.mutable_optimization() = train.optimization();
  *config.mutable_compression() = train.compression();
  return config;
}

WorkerConfig WorkerConfigOf(const TrainConfig& train, WorkerId worker,
                            const std::vector<std::string>& server_addresses) {
  WorkerConfig config;
  config.set_worker(worker.value);
  config.set_workers(train.consistency().workers());
  for (const std::string& address : server_addresses) config.add_servers(address);
  config.set_silence_seconds(train.silence_seconds());
  for (const std::string& text : train.straggler()) {
    const auto straggler = ParseStraggler(text);
    if (straggler.ok() && straggler->worker == worker) {
      config.set_delay_seconds(absl::ToDoubleSeconds(straggler->delay));
    }
  }
  *config.mutable_task() = train.task();
  *config.mutable_compression() = train.compression();
  return config;
}

std::string NameOf(ServerId server) { return absl::StrCat("server ", server.value); }
std::string NameOf(WorkerId worker) { return absl::StrCat("worker ", worker.value); }

absl::StatusOr<std::string> ParseListening(const std::string& line) {
  const std::string start = "listening ";
  if (!line.starts_with(start) || line.find(':', start.size()) == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("want \"listening HOST:PORT\", got \"", line, "\""));
  }
  return line.substr(start.size());
}

}  // namespace thinwire
