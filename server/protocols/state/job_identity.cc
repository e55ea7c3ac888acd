#include "server/protocols/state/job_identity.h"

#include "absl/strings/str_cat.h"
#include "common/text/quoted.h"

namespace thinwire {

absl::Status JobIdentity::CheckFollows() const {
  if (!leads()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "server: this is server 0, which leads (expected another server); see --addresses of server "
      "0");
}

absl::Status JobIdentity::CheckLeads() const {
  if (leads()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("server: not the lead (expected server 0, the first of --addresses, got server ",
                   server.value, ")"));
}

absl::Status JobIdentity::CheckJob(const std::string& got) const {
  if (got == job) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job: another job (expected ", Quoted(job), ", got ", Quoted(got), ")"));
}

absl::Status JobIdentity::CheckRun(std::string_view sender, RunId got) const {
  if (got == run) return absl::OkStatus();
  return AnotherRun(server, sender, run, got);
}

absl::Status AnotherRun(ServerId server, std::string_view sender, RunId expected, RunId got) {
  return absl::FailedPreconditionError(
      absl::StrCat("server ", server.value, " lost its state: ", std::string(sender),
                   " belongs to another run (expected run ", NameOf(expected), ", got ",
                   NameOf(got), "); restart all servers to begin a new run"));
}

absl::Status LostState(ServerId server, Epoch expected, Epoch got) {
  return absl::FailedPreconditionError(absl::StrCat(
      "server ", server.value, " lost its state: it was restarted (expected epoch ", expected.value,
      ", got ", got.value, "); restart all servers to begin a new run"));
}

std::string NameOf(RunId run) {
  return run == RunId{} ? "none" : absl::StrCat(absl::Hex(run.value, absl::kZeroPad16));
}

}  // namespace thinwire
