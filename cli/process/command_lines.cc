#include "cli/process/command_lines.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

constexpr char kServerPrefix[] = "server ";
constexpr char kWorkerPrefix[] = "worker ";

// Returns the number that follows PREFIX in NAME, such as 3 if NAME is "worker 3" and PREFIX is
// "worker ".
template <typename Id>
std::optional<Id> ParseName(const std::string& name, const std::string& prefix) {
  uint32_t number = 0;
  if (!name.starts_with(prefix) || !absl::SimpleAtoi(name.substr(prefix.size()), &number))
    return std::nullopt;
  return Id{number};
}

// Finds the program NAME in FOLDER, in bazel-bin's layout below BAZEL_FOLDER.
absl::StatusOr<std::string> FindProgram(const std::string& folder, const std::string& bazel_folder,
                                        const std::string& name) {
  const std::array<std::string, 3> paths = {absl::StrCat(folder, "/", bazel_folder, "/", name),
                                            absl::StrCat(folder, "/thinwire-", name),
                                            absl::StrCat(folder, "/", name)};
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, ignored))
      return path;
  }
  return absl::NotFoundError(absl::StrCat("--bin_dir: no program ", name, " (expected ", paths[0],
                                          ", ", paths[1], " or ", paths[2], ")"));
}

// Returns BIN_DIR, or if it is empty the folder of the program SELF or its parent folder: the first
// one that has the program NAME.
absl::StatusOr<std::string> FolderOf(const std::string& self, const std::string& bin_dir,
                                     const std::string& bazel_folder, const std::string& name) {
  if (!bin_dir.empty()) return bin_dir;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(self, error);
  if (error) return absl::NotFoundError(absl::StrCat(self, ": ", error.message()));
  const std::string folder = real.parent_path().string();
  if (FindProgram(folder, bazel_folder, name).ok()) return folder;
  return real.parent_path().parent_path().string();
}

}  // namespace

absl::StatusOr<Programs> FindPrograms(const std::string& self, const std::string& bin_dir) {
  ASSIGN_OR_RETURN(const std::string folder, FolderOf(self, bin_dir, "server", "server"));
  Programs programs;
  ASSIGN_OR_RETURN(programs.server, FindProgram(folder, "server", "server"));
  ASSIGN_OR_RETURN(programs.worker, FindProgram(folder, "worker", "worker"));
  return programs;
}

absl::StatusOr<std::string> FindServer(const std::string& self, const std::string& bin_dir) {
  ASSIGN_OR_RETURN(const std::string folder, FolderOf(self, bin_dir, "server", "server"));
  return FindProgram(folder, "server", "server");
}

absl::StatusOr<std::string> FindLaboratory(const std::string& self, const std::string& bin_dir) {
  ASSIGN_OR_RETURN(const std::string folder, FolderOf(self, bin_dir, "experiments", "laboratory"));
  const absl::StatusOr<std::string> path = FindProgram(folder, "experiments", "laboratory");
  if (path.ok()) return path;
  return absl::NotFoundError(
      absl::StrCat(path.status().message(),
                   "; in a source folder, `bazel build //experiments:laboratory` makes it"));
}

std::vector<std::string> ServerCommand(const Programs& programs, const std::string& job_file,
                                       ServerId server, std::vector<std::string> addresses,
                                       const std::string& state_dir) {
  std::string& own = addresses[server.value];
  if (own.empty()) own = "127.0.0.1:0";
  std::vector<std::string> command = {
      programs.server, "--config", job_file, "--server", absl::StrCat(server.value),
      "--listen",      own};
  // Only server 0 calls the other servers.
  if (server == ServerId{0} && addresses.size() > 1) {
    command.insert(command.end(), {"--addresses", absl::StrJoin(addresses, ",")});
  }
  if (!state_dir.empty()) command.insert(command.end(), {"--state_dir", state_dir});
  return command;
}

std::vector<std::string> WorkerCommand(const Programs& programs, const std::string& job_file,
                                       WorkerId worker, const std::vector<std::string>& addresses,
                                       const OutputFile& output, const std::string& state_dir) {
  std::vector<std::string> command = {programs.worker,
                                      "--config",
                                      job_file,
                                      "--worker",
                                      absl::StrCat(worker.value),
                                      "--addresses",
                                      absl::StrJoin(addresses, ",")};
  if (!output.path.empty()) {
    command.insert(command.end(), {"--output", output.path, "--keep", output.keep});
  }
  if (!state_dir.empty()) command.insert(command.end(), {"--state_dir", state_dir});
  return command;
}

std::vector<std::string> EvaluatorCommand(const Programs& programs, const std::string& job_file,
                                          const std::string& model) {
  return {programs.worker, "--config", job_file, "--evaluate", model};
}

std::string NameOf(ServerId server) { return absl::StrCat(kServerPrefix, server.value); }
std::string NameOf(WorkerId worker) { return absl::StrCat(kWorkerPrefix, worker.value); }

std::optional<ServerId> ServerNamed(const std::string& name) {
  return ParseName<ServerId>(name, kServerPrefix);
}
std::optional<WorkerId> WorkerNamed(const std::string& name) {
  return ParseName<WorkerId>(name, kWorkerPrefix);
}

absl::StatusOr<std::string> ParseListening(const std::string& line) {
  const std::string start = "listening ";
  if (!line.starts_with(start) || line.find(':', start.size()) == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an address (expected \"listening HOST:PORT\", got \"", line, "\")"));
  }
  return line.substr(start.size());
}

}  // namespace thinwire
