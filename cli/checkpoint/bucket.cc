#include "cli/checkpoint/bucket.h"

#include <signal.h>

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

constexpr char kProgram[] = "rclone";
constexpr int kNoProgram = 127;      // the exit code of env
constexpr int kNoFolder = 3;         // the exit code of rclone
constexpr size_t kStampLength = 20;  // of "2026/11/28 20:10:23 "
// rclone aborts its incomplete uploads after a signal, which would otherwise occupy the bucket.
constexpr absl::Duration kStopTimeout = absl::Seconds(10);

// Returns whether LINE begins with the time of a line of rclone's log.
bool HasStamp(absl::string_view line) {
  return line.size() > kStampLength && line[4] == '/' && line[7] == '/' && line[13] == ':';
}

// Keeps the last message of rclone's log: a line with a time, and the causes on the lines after it.
void AddLine(absl::string_view line, std::string& message) {
  if (HasStamp(line)) {
    line.remove_prefix(kStampLength);
    if (absl::ConsumePrefix(&line, "ERROR : ")) line = absl::StripLeadingAsciiWhitespace(line);
    message.assign(line.data(), line.size());
  } else if (message.empty()) {
    message.assign(line.data(), line.size());
  } else if (absl::StartsWith(line, "caused by: ")) {
    absl::StrAppend(&message, " (", line, ")");
  }
}

// Returns the code of the error with rclone's exit code and MESSAGE, which alone names the cause.
absl::StatusCode CodeOf(int exit_code, const std::string& message) {
  constexpr std::pair<absl::string_view, absl::StatusCode> kCauses[] = {
      {"NoSuchBucket", absl::StatusCode::kNotFound},
      {"NoCredentialProviders", absl::StatusCode::kPermissionDenied},
      {"AccessDenied", absl::StatusCode::kPermissionDenied},
      {"Forbidden", absl::StatusCode::kPermissionDenied},
      {"InvalidAccessKeyId", absl::StatusCode::kPermissionDenied},
      {"SignatureDoesNotMatch", absl::StatusCode::kPermissionDenied},
      {"didn't find section in config file", absl::StatusCode::kFailedPrecondition},
      {"no space left on device", absl::StatusCode::kResourceExhausted},
      {"remaining disk space", absl::StatusCode::kResourceExhausted},
  };
  for (const auto& [text, code] : kCauses) {
    if (absl::StrContains(message, text)) return code;
  }
  return exit_code == kNoFolder ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable;
}

// Returns URL in rclone's notation, or "" if it has none of the forms of bucket.h.
std::string RemoteOf(const std::string& url) {
  absl::string_view path = url;
  if (absl::ConsumePrefix(&path, "s3://")) {
    if (path.empty() || path.front() == '/') return "";
    // A bucket that does not exist is an error, probably of the name.
    return absl::StrCat(":s3,env_auth=true,no_check_bucket=true:", path);
  }
  if (absl::StartsWith(path, "/")) return url;
  const size_t name = path.find(':');
  const bool is_remote = name != absl::string_view::npos && name > 0 && path.front() != '-' &&
                         path.substr(0, name).find_first_of("/,") == absl::string_view::npos &&
                         path.substr(name + 1, 2) != "//";
  return is_remote ? url : "";
}

}  // namespace

absl::StatusOr<Bucket> Bucket::Make(const std::string& url, Signals& signals) {
  std::string remote = RemoteOf(url);
  if (!remote.empty()) return Bucket(url, std::move(remote), signals);
  return absl::InvalidArgumentError(
      absl::StrCat("URL: not a bucket (expected s3://BUCKET/PATH, NAME:PATH of rclone's "
                   "configuration or /PATH, got ",
                   Quoted(url), ")"));
}

absl::Status Bucket::Named(const absl::Status& status, const std::string& folder) const {
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{folder, url_}}));
}

absl::Status Bucket::Upload(const std::string& folder, const std::vector<std::string>& rules) {
  return Run({"copy", folder, remote_}, rules);
}

absl::Status Bucket::Replace(const std::string& folder, const std::vector<std::string>& rules) {
  return Run({"copy", "--ignore-times", folder, remote_}, rules);
}

absl::Status Bucket::Download(const std::string& folder, const std::vector<std::string>& rules) {
  return Run({"copy", remote_, folder}, rules);
}

absl::Status Bucket::Remove(const std::vector<std::string>& rules) {
  return Run({"delete", "--rmdirs", remote_}, rules);
}

absl::Status Bucket::WaitFor(absl::Duration duration) {
  ProcessSet none(*signals_, "/dev/null");
  for (const ProcessEvent& event : none.Wait(duration)) {
    if (event.kind == ProcessEvent::Kind::kSignal) signal_ = event.signal;
  }
  return signal_ == 0 ? absl::OkStatus() : absl::CancelledError("stopped by a signal");
}

absl::Status Bucket::Run(std::vector<std::string> words, const std::vector<std::string>& rules) {
  // env finds the program on the PATH. Debian's rclone cannot start with AWS_CA_BUNDLE, in place of
  // which it has RCLONE_CA_CERT.
  std::vector<std::string> command = {"/usr/bin/env", "-u",    "AWS_CA_BUNDLE",       kProgram,
                                      "--log-level",  "ERROR", "--low-level-retries", "3",
                                      "--fast-list"};
  command.insert(command.end(), words.begin(), words.end());
  for (const std::string& rule : rules) command.insert(command.end(), {"--filter", rule});
  command.insert(command.end(), {"--filter", "- **"});
  // The lines of the log arrive as events, so no file is needed.
  ProcessSet processes(*signals_, "/dev/null");
  RETURN_IF_ERROR(processes.Start(kProgram, command));
  ExitStatus exit;
  std::string message;
  while (processes.running(kProgram)) {
    const auto events = processes.Wait(signal_ == 0 ? absl::InfiniteDuration() : kStopTimeout);
    if (signal_ != 0 && events.empty()) processes.SignalAll(SIGKILL);
    for (const ProcessEvent& event : events) {
      if (event.kind == ProcessEvent::Kind::kLog) AddLine(event.text, message);
      if (event.kind == ProcessEvent::Kind::kExit) exit = event.exit;
      if (event.kind != ProcessEvent::Kind::kSignal) continue;
      signal_ = event.signal;
      processes.SignalAll(SIGTERM);
    }
  }
  if (signal_ != 0) return absl::CancelledError(absl::StrCat(url_, ": stopped by a signal"));
  if (exit.ok()) return absl::OkStatus();
  if (exit.code == kNoProgram) {
    return absl::FailedPreconditionError(
        absl::StrCat(url_,
                     ": the program rclone is missing (expected it on the PATH; Debian's "
                     "package is rclone)"));
  }
  return absl::Status(
      CodeOf(exit.code, message),
      absl::StrCat(url_, ": rclone: ", message.empty() ? exit.ToString() : message));
}

}  // namespace thinwire
