#include "cli/mode_command.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/rpc/call_server.h"
#include "common/ids.h"
#include "common/text/problems.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire mode --addresses a:7000,b:7000 --set async\n"
    "  thinwire mode --addresses a:7000,b:7000 --set backup --backup 1\n"
    "  thinwire mode --addresses a:7000,b:7000 --set ssp --slack 4\n"
    "The lead, the first address, announces the step from which on the new mode is in force. All "
    "workers finish the steps before it under the old mode. `thinwire status` shows the mode.";

// Returns the settings of the wanted mode. Errors: InvalidArgument if a flag is missing or does not
// belong to the mode.
absl::StatusOr<Consistency> SettingsOf(const ModeCommand& command) {
  Problems problems;
  Consistency settings;
  Consistency::Mode::Value mode = Consistency::Mode::sync;
  Consistency::Mode::Value_Parse(command.mode, &mode);
  settings.set_mode(mode);
  const auto check = [&](const char* flag, bool is_given, bool is_wanted, bool is_required) {
    if (is_given && !is_wanted) {
      problems.Add(flag, absl::StrCat("has no effect with --set ", command.mode));
    } else if (!is_given && is_required) {
      problems.Add(flag, absl::StrCat("missing (expected with --set ", command.mode, ")"));
    }
  };
  const bool is_backup = mode == Consistency::Mode::backup;
  const bool is_ssp = mode == Consistency::Mode::ssp;
  check("--backup", command.backup.has_value(), is_backup, is_backup);
  check("--slack", command.slack.has_value(), is_ssp, is_ssp);
  check("--fold_every", command.fold_every.has_value(), is_ssp || mode == Consistency::Mode::async,
        false);
  if (!problems.empty()) return problems.ToStatus();
  if (command.backup.has_value()) settings.set_backup(*command.backup);
  if (command.slack.has_value()) settings.set_slack(*command.slack);
  if (command.fold_every.has_value()) settings.set_fold_every(*command.fold_every);
  return settings;
}

}  // namespace

CLI::App* AddMode(CLI::App& app, ModeCommand& command) {
  CLI::App* mode = app.add_subcommand("mode", "Changes the mode of a running job");
  AddServerFlags(*mode, command.servers, "an operator's")->required();
  mode->add_option("--set", command.mode, "The new mode: sync, backup, ssp or async")
      ->type_name("MODE")
      ->check(CLI::IsMember({"sync", "backup", "ssp", "async"}))
      ->required();
  mode->add_option("--backup", command.backup,
                   "With --set backup: workers that a step does not wait for")
      ->type_name("COUNT");
  mode->add_option("--slack", command.slack,
                   "With --set ssp: steps that a worker may be ahead of the slowest")
      ->type_name("STEPS");
  mode->add_option("--fold_every", command.fold_every,
                   "With --set ssp or async: gradients per update; default 1")
      ->type_name("COUNT");
  mode->add_flag("--force", command.force,
                 "Also a mode in which training may diverge with the job's settings, of which "
                 "`thinwire config check` warns");
  mode->footer(kExamples);
  return mode;
}

ExitCode RunMode(const ModeCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<Consistency> settings = SettingsOf(command);
  if (!settings.ok()) {
    console.Error(std::string(settings.status().message()));
    return ExitCode::kUsage;
  }
  SetModeRequest request;
  *request.mutable_consistency() = *settings;
  request.set_force(command.force);
  const absl::StatusOr<SetModeReply> reply =
      CallServer(command.servers, ServerId{0}, &Control::Stub::SetMode, request);
  if (!reply.ok()) return Fail(console, reply.status());
  for (const std::string& warning : reply->warnings()) console.Warning(warning);
  out << "mode " << reply->mode() << " -> " << command.mode << " from step " << reply->step()
      << " on" << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
