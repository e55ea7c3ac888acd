#include "common/base/exit_code.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

constexpr NamedExitCode kExitCodes[] = {
    {ExitCode::kOk, "done"},
    {ExitCode::kUsage, "usage"},
    {ExitCode::kDiverged, "diverged"},
    {ExitCode::kUnavailable, "unavailable"},
    {ExitCode::kSoftware, "internal error"},
    {ExitCode::kIo, "result not written"},
    {ExitCode::kPreempted, "stopped by a signal"},
    {ExitCode::kRefused, "worker number refused"},
    {ExitCode::kConfig, "configuration"},
    {ExitCode::kInterrupted, "interrupted"},
};

}  // namespace

std::span<const NamedExitCode> ExitCodes() { return kExitCodes; }

std::string ExitCodesHelp() {
  const auto append = [](std::string* out, const NamedExitCode& each) {
    absl::StrAppend(out, static_cast<int>(each.code), " ", std::string(each.name));
  };
  return absl::StrCat("Exit codes: ", absl::StrJoin(kExitCodes, ", ", append), ".");
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kConfig;
    default:
      return ExitCode::kSoftware;
  }
}

ExitCode ExitCodeOfWorker(const absl::Status& status) {
  if (absl::IsAlreadyExists(status) || absl::IsOutOfRange(status)) return ExitCode::kRefused;
  return ExitCodeOf(status);
}

}  // namespace thinwire
