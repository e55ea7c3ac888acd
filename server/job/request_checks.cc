#include "server/job/request_checks.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "server/protocols/sums/round_sum.h"

namespace thinwire {
namespace {

absl::Status CheckGoesOn(const ServerCondition& server) {
  return server.state.stopping ? Stopping() : absl::OkStatus();
}

// An operator may leave out the job.
absl::Status CheckOperatorsJob(const ServerCondition& server, const std::string& job) {
  RETURN_IF_ERROR(CheckGoesOn(server));
  return job.empty() ? absl::OkStatus() : server.state.identity.CheckJob(job);
}

absl::Status CheckRuleChange(const ServerCondition& server, const std::string& job) {
  RETURN_IF_ERROR(CheckOperatorsJob(server, job));
  // A server that goes back to a checkpoint would forget the change.
  RETURN_IF_ERROR(server.agreed);
  if (server.has_model) return absl::OkStatus();
  return absl::FailedPreconditionError("no worker has joined yet");
}

absl::Status CheckRun(const JobIdentity& identity, const JoinRequest& request) {
  const RunId got{request.run()};
  if (got != RunId{}) return identity.CheckRun(absl::StrCat("worker ", request.worker()), got);
  if (identity.leads() && request.incarnation() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "run: missing (expected the run of server 0's reply to Join, got none)");
}

// Checks the tensors that a process owns.
absl::Status CheckOwned(uint32_t member_count, const JoinRequest& request) {
  const auto& owned = request.owned_tensors();
  if (member_count == 1 && owned.empty()) return absl::OkStatus();
  const auto tensor_count = static_cast<uint32_t>(request.tensors_size());
  const bool ascending =
      std::ranges::adjacent_find(owned, std::ranges::greater_equal()) == owned.end();
  if (member_count > 1 && !owned.empty() && ascending && owned[owned.size() - 1] < tensor_count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "owned_tensors: ",
      member_count == 1 ? "expected none in a job with members: 1"
                        : absl::StrCat("expected ascending positions of tensors below ",
                                       tensor_count, ", at least one"),
      ", got ", owned.empty() ? "none" : absl::StrCat(owned.size(), " of them")));
}

}  // namespace

absl::Status Stopping() { return absl::UnavailableError("this server is stopping"); }

absl::Status CheckJoin(const ServerCondition& server, const JoinRequest& request,
                       absl::FunctionRef<absl::Status()> may_rejoin) {
  const JobIdentity& identity = server.state.identity;
  const bool is_new = request.incarnation() == 0;
  RETURN_IF_ERROR(CheckGoesOn(server));
  RETURN_IF_ERROR(identity.CheckJob(request.job()));
  RETURN_IF_ERROR(server.state.match.Check(request));
  RETURN_IF_ERROR(server.state.membership.CheckNumber(request.worker(), request.member()));
  RETURN_IF_ERROR(CheckOwned(server.state.membership.member_count(), request));
  RETURN_IF_ERROR(CheckRun(identity, request));
  if (!is_new) RETURN_IF_ERROR(may_rejoin());
  RETURN_IF_ERROR(server.agreed);
  if (is_new && !identity.leads()) {
    return absl::InvalidArgumentError(
        absl::StrCat("incarnation: only server 0 assigns incarnations (expected one above 0 at "
                     "server ",
                     identity.server.value, ", got 0)"));
  }
  const uint32_t target = server.state.rule.target();
  if (is_new && request.worker() >= target) {
    return absl::OutOfRangeError(
        absl::StrCat("worker: above the number of workers (expected below ", target, ", got ",
                     request.worker(), "); an operator can raise it with thinwire scale"));
  }
  return absl::OkStatus();
}

absl::Status Check(const ServerCondition& server, const AdmitRequest& request) {
  const JobIdentity& identity = server.state.identity;
  RETURN_IF_ERROR(CheckGoesOn(server));
  RETURN_IF_ERROR(identity.CheckJob(request.job()));
  if (identity.leads() || request.server() != identity.server.value) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server: another server (expected ", identity.server.value, " and not the lead, got ",
        request.server(), "); see --addresses of server 0"));
  }
  RETURN_IF_ERROR(server.state.membership.CheckNumber(request.worker()));
  if (request.run() == 0 || request.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("run, incarnation: missing (expected numbers above 0, got ", request.run(),
                     ", ", request.incarnation(), ")"));
  }
  const Epoch epoch{request.epoch()};
  if (epoch != Epoch{} && epoch != identity.epoch && !server.state.recovered) {
    return LostState(identity.server, epoch, identity.epoch);
  }
  const RunId got{request.run()};
  if (!server.has_model || got == identity.run) return server.agreed;
  return AnotherRun(ServerId{0}, absl::StrCat("server ", identity.server.value), got, identity.run);
}

absl::Status Check(const ServerCondition& server, const SumRequest& request) {
  const JobIdentity& identity = server.state.identity;
  RETURN_IF_ERROR(CheckGoesOn(server));
  RETURN_IF_ERROR(identity.CheckJob(request.job()));
  RETURN_IF_ERROR(identity.CheckRun("server 0", RunId{request.run()}));
  RETURN_IF_ERROR(server.agreed);
  if (!server.sums || identity.leads()) {
    return absl::FailedPreconditionError(
        "server: adds no sums for server 0 (expected another server of a job with clip_norm or "
        "optimizer lars or lamb)");
  }
  if (request.generation() != identity.generation.value) {
    return absl::FailedPreconditionError(absl::StrCat("generation: another one (expected ",
                                                      identity.generation.value, ", got ",
                                                      request.generation(), ")"));
  }
  return SumsOf(request.sums()).status();
}

absl::Status Check(const ServerCondition& server, const HeartbeatRequest& request) {
  return server.state.membership.CheckNumber(request.worker(), request.member());
}

absl::Status Check(const ServerCondition& server, const LeaveRequest& request) {
  RETURN_IF_ERROR(server.state.membership.CheckNumber(request.worker(), request.member()));
  if (request.run() != 0) {
    const std::string sender = absl::StrCat("worker ", request.worker());
    RETURN_IF_ERROR(server.state.identity.CheckRun(sender, RunId{request.run()}));
  }
  return server.agreed;
}

absl::Status Check(const ServerCondition& server, const ClaimNumberRequest& /*request*/) {
  RETURN_IF_ERROR(CheckGoesOn(server));
  RETURN_IF_ERROR(server.agreed);
  return server.state.identity.CheckLeads();
}

absl::Status Check(const ServerCondition& server, const ScaleRequest& request) {
  RETURN_IF_ERROR(CheckRuleChange(server, request.job()));
  return server.state.identity.CheckLeads();
}

absl::Status Check(const ServerCondition& server, const SetModeRequest& request) {
  RETURN_IF_ERROR(CheckRuleChange(server, request.job()));
  // Only a lead states its run. An operator calls the lead.
  if (request.run() == 0) return server.state.identity.CheckLeads();
  RETURN_IF_ERROR(server.state.identity.CheckFollows());
  return server.state.identity.CheckRun("server 0", RunId{request.run()});
}

absl::Status Check(const ServerCondition& server, const DrainRequest& request) {
  RETURN_IF_ERROR(CheckOperatorsJob(server, request.job()));
  if (!request.has_worker()) return absl::OkStatus();
  RETURN_IF_ERROR(server.state.identity.CheckLeads());
  return server.state.membership.CheckNumber(request.worker());
}

absl::Status Check(const ServerCondition& server, const SaveCheckpointRequest& request) {
  RETURN_IF_ERROR(CheckGoesOn(server));
  return request.run() == 0 ? server.state.identity.CheckLeads() : absl::OkStatus();
}

absl::Status Check(const ServerCondition& server, const RestoreCheckpointRequest& request) {
  RETURN_IF_ERROR(CheckOperatorsJob(server, request.job()));
  return server.state.identity.CheckLeads();
}

absl::Status Check(const ServerCondition& /*server*/, const StatusRequest& /*request*/) {
  return absl::OkStatus();
}

}  // namespace thinwire
