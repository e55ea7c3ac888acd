#include "client/exchange/exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire::client {
namespace {

// Returns at most a third of the lease, so that two heartbeats in a row may be lost before the
// lease ends.
absl::Duration HeartbeatInterval(const ClientOptions& options, const JoinReply& lead) {
  const absl::Duration third = absl::Seconds(lead.lease_seconds()) / 3;
  return std::max(std::min(third, options.heartbeat_interval), absl::Milliseconds(1));
}

}  // namespace

Exchange::Exchange(ExchangeParts parts, const std::vector<JoinReply>& replies)
    : parts_(std::move(parts)),
      returns_(parts_.partition, parts_.encoder, parts_.report),
      reads_(parts_, links_, returns_, [this](absl::Status failure) { Fail(std::move(failure)); }),
      pushes_(parts_, links_, reads_, returns_,
              [this](absl::Status failure) { Fail(std::move(failure)); }),
      last_check_(parts_.loop->Now()) {
  const absl::Duration heartbeat_interval = HeartbeatInterval(parts_.options, replies[0]);
  check_interval_ = std::min(heartbeat_interval, parts_.options.silence / 4);
  ServerLink::Observer& observer = *this;
  for (uint32_t s = 0; s < parts_.options.server_count; ++s) {
    links_.push_back(std::make_unique<ServerLink>(parts_, ServerId{s}, replies[s],
                                                  Incarnation{replies[0].incarnation()},
                                                  heartbeat_interval, observer));
  }
}

void Exchange::Start(Step first) {
  reads_.ReadAll(first);
  for (const std::unique_ptr<ServerLink>& link : links_) link->StartHeartbeats();
  CheckServers();
}

void Exchange::Fail(absl::Status failure) {
  parts_.progress.Fail(std::move(failure));
  Stop();
}

void Exchange::Stop() {
  stopped_ = true;
  pushes_.Stop();
  for (const std::unique_ptr<ServerLink>& link : links_) link->Close();
}

void Exchange::OnMessage(ServerLink& link, const ServerFrame& message) {
  for (const VerdictEntry& verdict : message.verdicts) {
    if (!stopped_) pushes_.OnVerdict(link, verdict);
  }
  for (const ParametersEntry& entry : message.parameters) {
    if (!stopped_) reads_.OnParameters(link, entry);
  }
  if (!stopped_) reads_.OnWaiting(link, message.waits);
}

void Exchange::CheckServers() {
  if (stopped_) return;
  const absl::Time now = parts_.loop->Now();
  // If two checks are further apart than half the silence limit, this process was suspended.
  // Received messages and heartbeat replies are then still queued, so the gap does not count as
  // silence of the servers.
  const bool suspended = now - last_check_ > parts_.options.silence / 2;
  last_check_ = now;
  std::vector<std::optional<ServerOutage>> outages;
  for (const std::unique_ptr<ServerLink>& link : links_) {
    if (suspended) link->Resume();
    outages.push_back(link->liveness().OutageAt(now));
  }
  if (const std::optional<size_t> longest = LongestOutage(outages); longest.has_value()) {
    return FailForOutage(*links_[*longest], *outages[*longest]);
  }
  parts_.loop->PostAt(now + check_interval_, [this] { CheckServers(); });
}

void Exchange::FailForOutage(ServerLink& link, const ServerOutage& outage) {
  lost_ = link.server();
  const bool refusing = outage.state == ServerState::kRefusing;
  std::string awaited = link.queue().Awaited();
  if (awaited.empty()) awaited = absl::StrCat("computed step ", reads_.step().value);
  std::string message = absl::StrFormat(
      "%s: %s for %.1f s while worker %d %s", parts_.transport.NameOf(link.server()),
      refusing ? "accepted no stream" : "silent", absl::ToDoubleSeconds(outage.duration),
      parts_.options.worker.value, awaited);
  if (!outage.last_error.ok()) absl::StrAppend(&message, "; ", outage.last_error.ToString());
  const bool unavailable = refusing || outage.last_error.code() == absl::StatusCode::kUnavailable;
  Fail(unavailable ? absl::UnavailableError(message) : absl::DeadlineExceededError(message));
}

}  // namespace thinwire::client
