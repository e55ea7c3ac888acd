#include "cli/launch/launch_staging.h"

#include <google/protobuf/text_format.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/certs/certs_command.h"
#include "cli/launch/launch_script.h"
#include "cli/process/command_lines.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/tls/identity.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

absl::Status Link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  fs::create_directories(link.parent_path(), error);
  if (!error) fs::create_symlink(fs::absolute(target), link, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(link.string(), ": ", error.message()));
}

// Makes the credentials folder of a process at LINK: a new one of the authority, or a link to the
// folder of the process in --credentials.
absl::Status StageCredentials(const LaunchCommand& command, const Identity& identity,
                              const fs::path& link, absl::Time now) {
  const std::string role(RoleName(identity.role));
  if (command.credentials_from.empty()) {
    const fs::path folder(command.credentials);
    const std::string name =
        identity.number.has_value() ? absl::StrCat(role, "-", *identity.number) : role;
    const bool shared = identity.role == Role::kWorker && !fs::exists(folder / name);
    const fs::path source = folder / (shared ? role : name);
    // Reports a missing or a wrong certificate before any process starts.
    RETURN_IF_ERROR(Credentials::Load(source.string(), identity).status());
    return Link(source, link);
  }
  IssueOptions options;
  options.authority_dir = command.credentials_from;
  options.role = role;
  options.job = identity.job;
  if (identity.role == Role::kServer) options.server = identity.number;
  if (identity.role == Role::kWorker) options.worker = identity.number;
  options.out = link.string();
  std::error_code ignored;  // a folder that does not exist fails below
  fs::create_directories(link.parent_path(), ignored);
  std::ostringstream message, error;
  if (IssueCredentials(options, now, message, error) == ExitCode::kOk) {
    return absl::OkStatus();
  }
  std::string text = error.str();
  if (text.ends_with('\n')) text.pop_back();
  return absl::InvalidArgumentError(absl::StrCat("--credentials_from: ", text));
}

}  // namespace

absl::Status StageHosts(const LaunchCommand& command, const JobConfig& config,
                        const std::vector<Host>& hosts, const TempDir& dir, absl::Time now) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  RETURN_IF_ERROR(dir.WriteFile("job.textproto", text));
  std::vector<std::pair<std::string, std::string>> copies;  // the files' places in FOLDER and here
  if (command.copy && command.script.empty()) {
    ASSIGN_OR_RETURN(const Programs programs, FindPrograms(command.run.self, command.run.bin_dir));
    copies = {{"bin/server", programs.server}, {"bin/worker", programs.worker}};
  } else if (command.copy) {
    ASSIGN_OR_RETURN(const std::string server, FindServer(command.run.self, command.run.bin_dir));
    ASSIGN_OR_RETURN(const std::string package, PackageFolder(command.run.self));
    copies = {{"bin/server", server}, {"python/thinwire", package}};
  }
  uint32_t server = 0, worker = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const fs::path folder = dir.PathOf(absl::StrCat("host-", i));
    RETURN_IF_ERROR(Link(dir.PathOf("job.textproto"), folder / "job.textproto"));
    for (const auto& [place, path] : copies) RETURN_IF_ERROR(Link(path, folder / place));
    const uint32_t server_end = server + hosts[i].servers, worker_end = worker + hosts[i].workers;
    for (; server < server_end; ++server) {
      if (command.insecure) continue;
      RETURN_IF_ERROR(StageCredentials(command, {Role::kServer, config.name(), server},
                                       folder / absl::StrCat("credentials/server-", server), now));
    }
    for (; worker < worker_end; ++worker) {
      if (command.insecure) continue;
      RETURN_IF_ERROR(StageCredentials(command, {Role::kWorker, config.name(), worker},
                                       folder / absl::StrCat("credentials/worker-", worker), now));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Credentials> OwnCredentials(const LaunchCommand& command, const JobConfig& config,
                                           const TempDir& dir, absl::Time now) {
  if (command.insecure) return Credentials();
  const Identity viewer = {Role::kViewer, config.name(), std::nullopt};
  const std::string folder = dir.PathOf("viewer");
  RETURN_IF_ERROR(StageCredentials(command, viewer, folder, now));
  return Credentials::Load(folder, viewer);
}

}  // namespace thinwire
