#include "cli/checkpoint/checkpoint_calls.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/rpc/call_error.h"
#include "cli/rpc/call_server.h"
#include "cli/rpc/server_calls.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(5);

ExitCode Report(const absl::Status& status, std::ostream& err) {
  err << status.message() << std::endl;
  // A full disk of a server.
  return absl::IsResourceExhausted(status) ? ExitCode::kIo : ExitCodeOf(status);
}

// Returns why a server has not gone back to a checkpoint under GENERATION yet; OK if all have.
absl::Status CheckWentBack(ServerCalls& calls, const std::vector<std::string>& addresses,
                           uint64_t generation) {
  const auto statuses = calls.StatusOfEach(kStatusTimeout);
  for (uint32_t s = 0; s < statuses.size(); ++s) {
    RETURN_IF_ERROR(statuses[s].status());
    const StatusReply& status = *statuses[s];
    if (status.generation() >= generation && !status.awaits_rollback()) continue;
    return absl::UnavailableError(absl::StrCat(ServerName(ServerId{s}, addresses[s]),
                                               ": has not gone back yet (expected ", "generation ",
                                               generation, ", got ", status.generation(), ")"));
  }
  return absl::OkStatus();
}

// Blocks until all servers have gone back under GENERATION.
absl::Status AwaitWentBack(const CheckpointCalls& calls, uint64_t generation, absl::Time deadline,
                           absl::Duration poll) {
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, SplitAddresses(calls.servers));
  ASSIGN_OR_RETURN(const Credentials credentials, LoadCredentials(calls.servers));
  ServerCalls servers(addresses, credentials);
  for (;;) {
    absl::Status status = CheckWentBack(servers, addresses, generation);
    // A server that makes its job anew refuses connections for a moment.
    const bool may_end = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!may_end || absl::Now() >= deadline) return status;
    absl::SleepFor(poll);
  }
}

}  // namespace

Flag AddCheckpointCalls(CommandFlags& command, CheckpointCalls& calls) {
  Flag addresses = AddServerFlags(command, calls.servers, "an operator's");
  command
      .Add("--timeout", calls.timeout,
           "With --addresses: the seconds to wait for all servers. Default: 300")
      .Type("SECONDS")
      .Between(0.1, 86400.0);
  return addresses;
}

ExitCode SaveCheckpointNow(const CheckpointCalls& calls, std::ostream& out, std::ostream& err) {
  SaveCheckpointRequest request;
  request.set_seconds(calls.timeout);
  const absl::StatusOr<SaveCheckpointReply> reply =
      CallServer(calls.servers, ServerId{0}, request, absl::Seconds(calls.timeout) + kCallTimeout);
  if (!reply.ok()) return Report(reply.status(), err);
  if (!reply->has_least_step()) {
    out << "no server has a shard" << std::endl;
  } else if (reply->least_step() == reply->largest_step()) {
    out << "all servers have a checkpoint of step " << reply->least_step() << std::endl;
  } else {
    out << "all servers have a checkpoint, with shards at the steps " << reply->least_step()
        << " to " << reply->largest_step() << std::endl;
  }
  return ExitCode::kOk;
}

ExitCode RestoreRunning(const CheckpointCalls& calls, uint64_t step, std::ostream& out,
                        std::ostream& err, absl::Duration poll) {
  const absl::Duration timeout = absl::Seconds(calls.timeout);
  const absl::Time deadline = absl::Now() + timeout;
  RestoreCheckpointRequest request;
  request.set_step(step);
  const absl::StatusOr<RestoreCheckpointReply> reply =
      CallServer(calls.servers, ServerId{0}, request, timeout + kCallTimeout);
  if (!reply.ok()) return Report(reply.status(), err);
  const absl::Status status = AwaitWentBack(calls, reply->generation(), deadline, poll);
  if (!status.ok()) return Report(status, err);
  out << "all servers went back to step " << step << ", generation " << reply->generation()
      << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
