#include "cli/mode_command.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/rpc/call_server.h"
#include "common/base/ids.h"
#include "common/text/problems.h"
#include "config/command_flags.h"
#include "proto/control.pb.h"

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
  CLI::App* mode = CommandFlags(app).AddSubcommand("mode", "Changes the mode of a running job");
  CommandFlags flags(*mode);
  AddServerFlags(flags, command.servers, "an operator's").Required();
  flags.Add("--set", command.mode, "The new mode: sync, backup, ssp or async")
      .Type("sync|backup|ssp|async")
      .OneOf({"sync", "backup", "ssp", "async"})
      .Required();
  flags.Add("--backup", command.backup, "With --set backup: workers that a step does not wait for")
      .Type("COUNT");
  flags
      .Add("--slack", command.slack,
           "With --set ssp: steps that a worker may be ahead of the slowest")
      .Type("STEPS");
  flags
      .Add("--fold_every", command.fold_every,
           "With --set ssp or async: gradients per update; default 1")
      .Type("COUNT");
  flags.AddSwitch("--force", command.force,
                  "Also a mode in which training may diverge with the job's settings, of which "
                  "`thinwire config check` warns");
  flags.Footer(kExamples);
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
  const absl::StatusOr<SetModeReply> reply = CallServer(command.servers, ServerId{0}, request);
  if (!reply.ok()) return Fail(console, reply.status());
  for (const std::string& warning : reply->warnings()) console.Warning(warning);
  out << "mode " << reply->mode() << " -> " << command.mode << " from step " << reply->step()
      << " on" << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
