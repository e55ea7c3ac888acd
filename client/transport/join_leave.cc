#include "client/transport/join_leave.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/status_macros.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLargestBackoff = absl::Seconds(5);
// The shortest timeout of one call, even if less time is left for retries.
constexpr absl::Duration kLeastTimeout = absl::Seconds(1);
// An upper bound for the length of a lease, which the client learns only from the reply to Join. If
// another process already uses the worker's number, the server replies to Join only when the lease
// of that process ends or is renewed.
constexpr absl::Duration kLongestLease = absl::Seconds(30);

// Repeats CALL until it succeeds, fails with an error that is not retryable, or PATIENCE has
// passed. The argument of CALL is its timeout.
absl::Status Retry(Transport& transport, Clock& clock, ServerId server, absl::Duration patience,
                   absl::FunctionRef<absl::Status(absl::Duration)> call) {
  const absl::Time begin = clock.Now();
  std::minstd_rand jitter(server.value + 1);
  absl::Duration backoff = kFirstBackoff;
  while (true) {
    const absl::Duration left = patience - (clock.Now() - begin);
    const absl::Status status = call(std::max(left, kLeastTimeout));
    if (status.ok()) return status;
    const absl::Duration wait = backoff * std::uniform_real_distribution<double>(0, 1)(jitter);
    if (!IsRetryable(status) || clock.Now() - begin + wait >= patience) {
      return WithServerName(transport, server, status);
    }
    absl::Notification never;
    never.WaitForNotificationWithTimeout(wait);
    backoff = std::min(2 * backoff, kLargestBackoff);
  }
}

absl::StatusOr<JoinReply> JoinServer(Transport& transport, Clock& clock, absl::Duration silence,
                                     ServerId server, const JoinRequest& request) {
  JoinReply reply;
  const absl::Time begin = clock.Now();
  const absl::Status status = Retry(transport, clock, server, silence, [&](absl::Duration) {
    ASSIGN_OR_RETURN(reply, transport.Join(server, request, std::max(3 * silence, kLongestLease)));
    return absl::OkStatus();
  });
  if (status.ok()) return reply;
  if (!IsRetryable(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; worker ", request.worker(), " tried to join for ",
                   absl::FormatDuration(absl::Trunc(clock.Now() - begin, absl::Milliseconds(1)))));
}

absl::Status LeaveServer(Transport& transport, Clock& clock, absl::Duration patience,
                         ServerId server, const LeaveRequest& request) {
  return Retry(transport, clock, server, patience, [&](absl::Duration timeout) {
    return transport.Leave(server, request, timeout).status();
  });
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
  for (const TensorShape& shape : partition.tensors()) {
    Tensor* tensor = request.add_tensors();
    tensor->set_name(shape.name);
    for (const int64_t dimension : shape.shape) tensor->add_shape(dimension);
  }
  // Sends the shard size of the options, which the server rounds in the same way as this client.
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
                                                   absl::Duration silence, JoinRequest request) {
  std::vector<JoinReply> replies;
  for (uint32_t s = 0; s < request.servers(); ++s) {
    ASSIGN_OR_RETURN(JoinReply reply, JoinServer(transport, clock, silence, ServerId{s}, request));
    if (s == 0) request.set_incarnation(reply.incarnation());
    if (!replies.empty() && reply.generation() != replies[0].generation()) {
      return WithServerName(transport, ServerId{s},
                            absl::AbortedError(absl::StrCat(
                                "generation differs from the lead's (expected ",
                                replies[0].generation(), ", got ", reply.generation(), ")")));
    }
    replies.push_back(std::move(reply));
  }
  return replies;
}

absl::Status LeaveServers(Transport& transport, Clock& clock, absl::Duration silence,
                          uint32_t server_count, const LeaveRequest& request,
                          std::optional<ServerId> lost) {
  std::vector<ServerId> unreachable;
  for (uint32_t s = 0; s < server_count; ++s) {
    if (lost == ServerId{s}) continue;
    // Calls every server once before it retries any: each server makes the other workers wait for
    // this worker until this worker has left the server, so an unreachable server must not delay
    // leaving the other servers.
    if (!LeaveServer(transport, clock, absl::ZeroDuration(), ServerId{s}, request).ok()) {
      unreachable.push_back(ServerId{s});
    }
  }
  absl::Status failure;
  for (const ServerId server : unreachable) {
    const absl::Status status = LeaveServer(transport, clock, silence, server, request);
    if (!status.ok()) failure = status;
  }
  return failure;
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
