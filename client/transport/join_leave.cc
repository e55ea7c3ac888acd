#include "client/transport/join_leave.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "client/transport/backoff.h"
#include "common/status_macros.h"
#include "proto/join_tensors.h"

namespace thinwire::client {
namespace {

// The timeout of a Leave call. A worker that stops or has failed ends after this time at the
// latest.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

// Joins one server. Calls it again while it is unreachable.
class ServerJoin {
 public:
  ServerJoin(Transport& transport, Clock& clock, const std::shared_ptr<StopSignal>& stop,
             const JoinWait& wait, ServerId server)
      : transport_(transport),
        clock_(clock),
        stop_(stop),
        wait_(wait),
        server_(server),
        begin_(clock.Now()),
        next_notice_(begin_ + wait.first_notice) {}

  // In a job with rounds, also calls the server again while its generation is below LEAST.
  absl::StatusOr<JoinReply> Run(const JoinRequest& request, Generation least) {
    Backoff backoff(WorkerId{request.worker()}, server_);
    while (!stop_->is_set()) {
      absl::StatusOr<JoinReply> reply = Call(request);
      if (reply.ok() && reply->by_round() && Generation{reply->generation()} < least) {
        was_behind_ = true;
        reply = absl::UnavailableError(
            absl::StrCat("has not continued from the earlier step yet (expected generation ",
                         least.value, ", got ", reply->generation(), ")"));
      }
      if (reply.ok()) return reply;
      const absl::Status status = WithServerName(transport_, server_, reply.status());
      const bool in_use =
          absl::IsAlreadyExists(status) && wait_.in_use_timeout > absl::ZeroDuration();
      if (!in_use && !IsRetryable(status)) return status;
      const absl::Duration pause = backoff.Next();
      const absl::Duration tried = clock_.Now() - begin_;
      if (tried + pause >= (in_use ? wait_.in_use_timeout : wait_.start_timeout)) {
        return absl::Status(
            status.code(),
            absl::StrCat(status.message(), "; worker ", request.worker(), " tried to join for ",
                         absl::FormatDuration(absl::Trunc(tried, absl::Milliseconds(1)))));
      }
      WaitUntil([] { return false; }, pause, std::string(reply.status().message()));
    }
    return WithServerName(transport_, server_, absl::CancelledError("stopped while joining"));
  }

  // Returns true if Run has received a reply with a generation below `least`.
  bool was_behind() const { return was_behind_; }

 private:
  absl::StatusOr<JoinReply> Call(const JoinRequest& request) {
    // The transport may set the answer after this function has returned, if the wait was stopped.
    const auto answer = std::make_shared<std::optional<absl::StatusOr<JoinReply>>>();
    transport_.Join(server_, request, wait_.call_timeout,
                    [stop = stop_, answer](absl::StatusOr<JoinReply> reply) {
                      stop->Update([&] { *answer = std::move(reply); });
                    });
    const bool new_process = server_ == ServerId{0} && request.incarnation() == 0;
    const bool answered =
        WaitUntil([&] { return answer->has_value(); }, absl::InfiniteDuration(),
                  new_process ? absl::StrCat("no answer yet; it waits for the end of the lease of "
                                             "an earlier process of worker ",
                                             request.worker(), " if there was one")
                              : "no answer yet");
    if (!answered) return absl::CancelledError("stopped");
    return std::move(**answer);
  }

  // Waits as StopSignal::WaitUntil does, and reports that SERVER has PROBLEM.
  bool WaitUntil(absl::FunctionRef<bool()> done, absl::Duration longest,
                 const std::string& problem) {
    const absl::Time end = clock_.Now() + longest;
    while (true) {
      const absl::Time now = clock_.Now();
      if (now >= next_notice_) {
        const std::string text =
            absl::StrCat("waiting for ", transport_.NameOf(server_), ": ", problem);
        LOG(WARNING) << text;
        wait_.report(text);
        next_notice_ = now + wait_.notice_interval;
      }
      if (stop_->WaitUntil(done, std::min(end, next_notice_) - now)) return true;
      if (stop_->is_set() || clock_.Now() >= end) return false;
    }
  }

  Transport& transport_;
  Clock& clock_;
  const std::shared_ptr<StopSignal>& stop_;
  const JoinWait& wait_;
  const ServerId server_;
  const absl::Time begin_;
  absl::Time next_notice_;
  bool was_behind_ = false;
};

// Calls Leave of all SERVERS at the same time and returns their errors, in the order of SERVERS.
std::vector<absl::Status> CallLeave(Transport& transport, const std::vector<ServerId>& servers,
                                    const LeaveRequest& request) {
  std::vector<absl::Status> statuses(servers.size());
  absl::BlockingCounter unanswered(static_cast<int>(servers.size()));
  for (size_t i = 0; i < servers.size(); ++i) {
    transport.Leave(servers[i], request, kLeaveTimeout,
                    [&, i](const absl::StatusOr<LeaveReply>& reply) {
                      statuses[i] = reply.status();
                      unanswered.DecrementCount();
                    });
  }
  unanswered.Wait();
  return statuses;
}

// One call of Join at every server.
struct JoinAttempt {
  Generation least;  // the least generation of a job with rounds
  std::vector<JoinReply> replies;
  bool complete = false;    // false: a server has an error or a higher generation than the lead
  bool was_behind = false;  // a server had a lower generation at first
};

// Joins every server, in ascending order, until the first error, or until a server in a job with
// rounds has a higher generation than the lead.
absl::Status JoinAll(Transport& transport, Clock& clock, const std::shared_ptr<StopSignal>& stop,
                     const JoinWait& wait, JoinRequest request, JoinAttempt& attempt) {
  for (uint32_t s = 0; s < request.servers(); ++s) {
    ServerJoin join(transport, clock, stop, wait, ServerId{s});
    absl::StatusOr<JoinReply> reply = join.Run(request, attempt.least);
    attempt.was_behind = attempt.was_behind || join.was_behind();
    RETURN_IF_ERROR(reply.status());
    if (s == 0) {
      request.set_incarnation(reply->incarnation());
      request.set_run(reply->run());
    }
    const bool ahead =
        s > 0 && reply->by_round() && Generation{reply->generation()} > attempt.least;
    attempt.least = std::max(attempt.least, Generation{reply->generation()});
    attempt.replies.push_back(*std::move(reply));
    if (ahead) return absl::OkStatus();
  }
  attempt.complete = true;
  return absl::OkStatus();
}

// Leaves the servers that have sent REPLIES to a Join of WORKER. Logs errors.
void LeaveJoined(Transport& transport, Clock& clock, StopSignal& stop, uint32_t worker,
                 const std::vector<JoinReply>& replies) {
  if (replies.empty()) return;
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < replies.size(); ++s) servers.push_back(ServerId{s});
  LeaveRequest leave;
  leave.set_worker(worker);
  leave.set_incarnation(replies[0].incarnation());
  leave.set_run(replies[0].run());
  const absl::Status left =
      LeaveServers(transport, clock, stop, absl::ZeroDuration(), std::move(servers), leave);
  if (!left.ok()) LOG(WARNING) << "leaving after an incomplete Join: " << left.message();
}

}  // namespace

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:  // gRPC's code if a connection breaks within a message
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kOk:
      return true;
    default:
      return false;
  }
}

absl::Status WithServerName(const Transport& transport, ServerId server,
                            const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(transport.NameOf(server), ": ", status.message()));
}

JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition) {
  JoinRequest request;
  request.set_job(options.job);
  request.set_worker(options.worker.value);
  SetTensors(partition.tensors(), request);
  // Sends the shard size from the options, before rounding. The server rounds the shard size in the
  // same way as this client.
  request.set_shard_size(options.shard_size);
  request.set_servers(options.server_count);
  request.set_partition_hash(partition.hash());
  request.set_planned_examples(options.planned_examples);
  if (options.config.has_value()) *request.mutable_config() = *options.config;
  request.set_data_hash(options.data_hash);
  request.set_model_file_hash(options.model_file_hash);
  return request;
}

absl::StatusOr<std::vector<JoinReply>> JoinServers(Transport& transport, Clock& clock,
                                                   const std::shared_ptr<StopSignal>& stop,
                                                   const JoinWait& wait, JoinRequest request,
                                                   Generation least) {
  while (true) {
    JoinAttempt attempt = {.least = least};
    const absl::Status joined = JoinAll(transport, clock, stop, wait, request, attempt);
    if (attempt.complete) return std::move(attempt.replies);
    least = attempt.least;
    const bool rejoins = request.incarnation() != 0;
    // A process that keeps its incarnation must not leave, because it could not return.
    if (!joined.ok() || !rejoins) {
      LeaveJoined(transport, clock, *stop, request.worker(), attempt.replies);
    }
    if (joined.ok()) continue;
    // A server may have forgotten the incarnation, because it continues from a step before the
    // incarnation was assigned.
    const bool forgotten = absl::IsNotFound(joined) ||
                           (absl::IsFailedPrecondition(joined) && (rejoins || attempt.was_behind));
    if (!forgotten) return joined;
    request.set_incarnation(0);
  }
}

absl::Status LeaveServers(Transport& transport, Clock& clock, StopSignal& stop,
                          absl::Duration patience, std::vector<ServerId> servers,
                          const LeaveRequest& request) {
  const absl::Time end = clock.Now() + patience;
  Backoff backoff(WorkerId{request.worker()}, ServerId{0});
  absl::Status refused;
  while (true) {
    const std::vector<absl::Status> statuses = CallLeave(transport, servers, request);
    std::vector<ServerId> unreachable;
    absl::Status unreachable_error;
    for (size_t i = 0; i < servers.size(); ++i) {
      if (statuses[i].ok()) continue;
      const absl::Status status = WithServerName(transport, servers[i], statuses[i]);
      if (!IsRetryable(status)) {
        refused = status;
        continue;
      }
      unreachable.push_back(servers[i]);
      unreachable_error = status;
    }
    if (unreachable.empty()) return refused;
    const absl::Duration pause = backoff.Next();
    if (clock.Now() + pause >= end) return unreachable_error;
    stop.Wait(pause);
    if (stop.is_set()) return unreachable_error;
    servers = std::move(unreachable);
  }
}

Step ReturningStep(std::span<const JoinReply> replies) {
  uint64_t step = 0;
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      step = std::max({step, shard.predecessor_next(), shard.frontier()});
    }
  }
  return Step{step};
}

Step StartingStep(std::span<const JoinReply> replies) {
  uint64_t next = 0;
  uint64_t frontier = 0;
  bool open_round = false;
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      next = std::max({next, shard.predecessor_next(), shard.largest_next()});
      frontier = std::max(frontier, shard.frontier());
      open_round = open_round || (reply.by_round() && shard.open());
    }
  }
  return Step{std::max(next, frontier + (open_round ? 1 : 0))};
}

}  // namespace thinwire::client
