// The part of Exchange that watches over its servers: losses, heartbeats, and what a failure says.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/exchange.h"
#include "client/membership.h"
#include "client/shard_ranges.h"

namespace thinwire::client {

void Exchange::OnLost(ServerId server, const absl::Status& status) {
  parts_.report.Count(WorkerCounters::kReconnectsFieldNumber);
  if (parts_.tuner != nullptr) parts_.tuner->meter().Lost();
  hearing_.StreamLost(server, parts_.loop->Now(), status);
  // A server that was restarted turns the stream down too, and so does one that has fenced this
  // worker: the next heartbeat tells which.
  if (!IsWorthRetrying(status) && !absl::IsFailedPrecondition(status)) {
    Fail(WithServer(parts_.transport, server, status));
    return;
  }
  peers_[server.value].outbox.Resend();
}

void Exchange::OnHeartbeat(ServerId server, const absl::StatusOr<HeartbeatReply>& reply) {
  if (!reply.ok()) {
    hearing_.Failed(server, reply.status());
    if (!IsWorthRetrying(reply.status())) {
      Fail(WithServer(parts_.transport, server, reply.status()));
    }
    return;
  }
  hearing_.Heard(server, parts_.loop->Now());
  if (!IsSameJob(server, Generation{reply->generation()}, Epoch{reply->epoch()})) return;
  if (reply->fenced()) {
    Fail(absl::AbortedError(absl::StrCat("another process has taken worker ",
                                         parts_.options.worker.value, "'s number")));
    return;
  }
  if (server != ServerId{0}) return;
  std::vector<WorkerId> live;
  for (const uint32_t worker : reply->live()) live.push_back(WorkerId{worker});
  parts_.report.set_live(std::move(live));
}

bool Exchange::IsSameJob(ServerId server, Generation generation, Epoch epoch) {
  if (epoch != peers_[server.value].epoch) {
    Fail(absl::AbortedError(absl::StrCat(parts_.transport.NameOf(server),
                                         " was restarted and has lost its parameters")));
    return false;
  }
  if (generation != generation_) {
    Fail(absl::AbortedError(absl::StrCat(parts_.transport.NameOf(server),
                                         ": the job's state was lost: want generation ",
                                         generation_.value, ", got ", generation.value)));
    return false;
  }
  return true;
}

void Exchange::Tick() {
  if (stopped_) return;
  const absl::Time now = parts_.loop->Now();
  // Whoever was stopped for a while itself has frames and replies waiting to be heard.
  if (now - last_tick_ > parts_.options.silence / 2) hearing_.Forgive(now);
  last_tick_ = now;
  if (const std::optional<Hearing::Loss> loss = hearing_.Judge(now); loss.has_value()) {
    FailLost(*loss);
    return;
  }
  parts_.loop->PostAt(now + tick_interval_, [this] { Tick(); });
}

std::string Exchange::Awaited(ServerId server) const {
  const Outbox& outbox = peers_[server.value].outbox;
  if (const std::vector<ShardId> shards = outbox.unjudged(); !shards.empty()) {
    return absl::StrCat("waited for the verdicts of step ", verdicts_.step().value, " (",
                        ShardRanges(shards), ")");
  }
  if (const std::vector<ShardId> shards = outbox.unanswered(); !shards.empty()) {
    return absl::StrCat("waited for the parameters of step ", reading_.value, " (",
                        ShardRanges(shards), ")");
  }
  return absl::StrCat("computed step ", reading_.value);
}

void Exchange::FailLost(const Hearing::Loss& loss) {
  lost_ = loss.server;
  std::string message = absl::StrFormat(
      "%s: %s for %.1f s while worker %d %s", parts_.transport.NameOf(loss.server),
      loss.refusing ? "took no stream" : "silent", absl::ToDoubleSeconds(loss.since),
      parts_.options.worker.value, Awaited(loss.server));
  if (!loss.last_error.ok()) absl::StrAppend(&message, "; ", loss.last_error.ToString());
  const bool refused = loss.refusing || loss.last_error.code() == absl::StatusCode::kUnavailable;
  Fail(refused ? absl::UnavailableError(message) : absl::DeadlineExceededError(message));
}

void Exchange::Fail(absl::Status status) {
  parts_.rendezvous.Fail(std::move(status));
  Stop();
}

}  // namespace thinwire::client
