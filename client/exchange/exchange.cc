#include "client/exchange/exchange.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire::client {
namespace {

// Outages that are shorter are not reported.
constexpr absl::Duration kReportedOutage = absl::Seconds(1);

// Returns at most a third of the lease, so that two heartbeats in a row may be lost before the
// lease ends.
absl::Duration HeartbeatInterval(const ClientOptions& options, const JoinReply& lead) {
  const absl::Duration third = absl::Seconds(lead.lease_seconds()) / 3;
  return std::max(std::min(third, options.heartbeat_interval), absl::Milliseconds(1));
}

JoinRequest RejoinRequest(JoinRequest request, const JoinReply& lead) {
  request.set_incarnation(lead.incarnation());
  request.set_run(lead.run());
  return request;
}

}  // namespace

Exchange::Exchange(ExchangeParts parts, JoinRequest request, const std::vector<JoinReply>& replies)
    : parts_(std::move(parts)),
      rejoin_(RejoinRequest(std::move(request), replies[0])),
      returns_(parts_.partition, parts_.encoder, parts_.report),
      reads_(parts_, links_, returns_, [this](absl::Status failure) { Fail(std::move(failure)); }),
      pushes_(parts_, links_, reads_, returns_,
              [this](absl::Status failure) { Fail(std::move(failure)); }),
      longest_outage_(std::max(parts_.options.silence, parts_.options.server_return)),
      last_check_(parts_.loop->Now()),
      warned_(parts_.options.server_count, false) {
  const absl::Duration heartbeat_interval = HeartbeatInterval(parts_.options, replies[0]);
  check_interval_ = std::min(heartbeat_interval, parts_.options.silence / 4);
  ServerLink::Observer& observer = *this;
  for (uint32_t s = 0; s < parts_.options.server_count; ++s) {
    links_.push_back(std::make_unique<ServerLink>(parts_, ServerId{s}, rejoin_, replies[s],
                                                  heartbeat_interval, observer));
  }
}

void Exchange::Start(Step first) {
  pushes_.Start(first);
  reads_.ReadAll(first);
  for (const std::unique_ptr<ServerLink>& link : links_) link->StartHeartbeats();
  CheckServers();
}

void Exchange::Fail(absl::Status failure) {
  parts_.listener.OnFailure(std::move(failure));
  Stop();
}

void Exchange::OnRollback(Generation generation) {
  if (!stopped_) rollback_ = generation;
  parts_.listener.OnRollback(generation);
  // The training thread may wait for a heartbeat's reply. It finds the rollback after the wait.
  parts_.deals.EndWaits();
  parts_.job_news.EndWaits();
  Stop();
}

void Exchange::Stop() {
  stopped_ = true;
  pushes_.Stop();
  for (const std::unique_ptr<ServerLink>& link : links_) link->Close();
}

double Exchange::UnjudgedNorm() const {
  double norm = 0;
  for (const std::unique_ptr<ServerLink>& link : links_) {
    for (const ShardId shard : link->queue().unjudged()) {
      for (const PushEntry& push : link->queue().unjudged_pushes(shard)) {
        norm += parts_.encoder.NormOf(push);
      }
    }
  }
  return norm;
}

void Exchange::OnMessage(ServerLink& link, const ServerFrame& message) {
  for (const VerdictEntry& verdict : message.verdicts) {
    if (!stopped_) pushes_.OnVerdict(link, verdict);
  }
  for (const ParametersEntry& entry : message.parameters) {
    if (!stopped_) reads_.OnParameters(link, entry);
  }
  if (!stopped_) reads_.OnWaiting(link, message.waits);
  // Wakes the training thread once for the verdicts and the parameters of a message.
  pushes_.ContinueIfPossible();
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
    outages.push_back(link->liveness().OutageAt(now, longest_outage_));
  }
  if (const std::optional<size_t> longest = LongestOutage(outages); longest.has_value()) {
    return FailForOutage(*links_[*longest], *outages[*longest]);
  }
  ReportOutages(now);
  parts_.loop->PostAt(now + check_interval_, scope_.Bind([this] { CheckServers(); }));
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

void Exchange::ReportOutages(absl::Time now) {
  std::string waiting;
  for (const std::unique_ptr<ServerLink>& link : links_) {
    const auto outage = link->liveness().OutageAt(now, kReportedOutage);
    const bool is_long = outage.has_value() && outage->duration > parts_.options.silence;
    if (is_long && !warned_[link->server().value]) {
      LOG(WARNING) << absl::StrFormat(
          "%s: no answer for %.1f s, waits up to %.0f s; %s",
          parts_.transport.NameOf(link->server()), absl::ToDoubleSeconds(outage->duration),
          absl::ToDoubleSeconds(longest_outage_), outage->last_error.ToString());
    }
    warned_[link->server().value] = is_long;
    // Without an error, the server may only be slow.
    if (!outage.has_value() || outage->last_error.ok()) continue;
    if (link->queue().Awaited().empty()) continue;
    absl::StrAppend(&waiting, waiting.empty() ? "waiting for " : "; waiting for ",
                    parts_.transport.NameOf(link->server()), ": ", outage->last_error.message());
  }
  parts_.report.set_outage(std::move(waiting));
}

}  // namespace thinwire::client
