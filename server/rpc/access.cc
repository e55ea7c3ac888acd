#include "server/rpc/access.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

constexpr AccessRow kTable[] = {
    {"/thinwire.Control/Join", kWorkers},
    {"/thinwire.Control/Admit", kLead},
    {"/thinwire.Control/Heartbeat", kWorkers},
    {"/thinwire.Control/Leave", kWorkers},
    {"/thinwire.Control/ClaimNumber", kWorkers},
    {"/thinwire.Control/Status", kEverybody},
    {"/thinwire.Control/Follow", kLead},
    {"/thinwire.Control/Rollback", kLead},
    {"/thinwire.Control/Sum", kLead},
    {"/thinwire.Control/Scale", kLead | kOperators},
    {"/thinwire.Control/SetMode", kLead | kOperators},
    {"/thinwire.Control/Drain", kOperators},
    {"/thinwire.Control/SaveCheckpoint", kLead | kOperators},
    {"/thinwire.Control/RestoreCheckpoint", kOperators},
    {"/thinwire.Control/Masters", kEverybody},
    {"/thinwire.ParameterService/Exchange", kWorkers},
    {"/grpc.health.v1.Health/Check", kEverybody},
    {"/grpc.health.v1.Health/Watch", kEverybody},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kEverybody},
};

uint8_t BitOf(const Identity& peer) {
  switch (peer.role) {
    case Role::kServer:
      return peer.number == 0u ? kLead : kOtherServers;
    case Role::kWorker:
      return kWorkers;
    case Role::kOperator:
      return kOperators;
    case Role::kViewer:
      return kViewers;
  }
  return 0;
}

std::string NamesOf(uint8_t peers) {
  std::vector<absl::string_view> names;
  if (peers & kLead) names.push_back("server 0");
  if (peers & kOtherServers) names.push_back("another server");
  if (peers & kWorkers) names.push_back("a worker");
  if (peers & kOperators) names.push_back("an operator");
  if (peers & kViewers) names.push_back("a viewer");
  return absl::StrJoin(names, " or ");
}

}  // namespace

absl::Span<const AccessRow> AccessTable() { return kTable; }

absl::Status CheckJob(const Identity& peer, absl::string_view job) {
  if (peer.job == job) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("certificate: of another job (expected ", job, ", got ", peer.DnsName(), ")"));
}

absl::Status CheckAccess(absl::string_view method, const Identity& peer, absl::string_view job) {
  RETURN_IF_ERROR(CheckJob(peer, job));
  for (const AccessRow& row : kTable) {
    if (row.method != method) continue;
    if (row.peers & BitOf(peer)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        method, ": not allowed (expected ", NamesOf(row.peers), ", got ", peer.DnsName(), ")"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(Quoted(method), ": not a method that a certificate gives access to"));
}

absl::Status CheckWorker(const WorkerProof& proof, WorkerId worker) {
  if (!proof.certified.has_value() || *proof.certified == worker) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("worker: not the worker of the certificate (expected ", proof.certified->value,
                   ", got ", worker.value, ")"));
}

absl::Status CheckProcess(const WorkerProof& proof, const WorkerTokens& tokens, WorkerId worker,
                          Incarnation incarnation) {
  RETURN_IF_ERROR(CheckWorker(proof, worker));
  if (!proof.needs_token) return absl::OkStatus();
  return tokens.Check(worker, incarnation, proof.token);
}

}  // namespace thinwire
