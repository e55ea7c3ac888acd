#include "client/membership.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLargestBackoff = absl::Seconds(5);
// Of one call, however little patience is left.
constexpr absl::Duration kLeastTimeout = absl::Seconds(1);
// A Join under a live number is answered only when that process's lease has run out or held, and
// how long a lease is only the reply says.
constexpr absl::Duration kLongestLease = absl::Seconds(30);

}  // namespace

bool IsWorthRetrying(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:  // a connection cut within a message
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kOk:  // a stream that the server closed in order
      return true;
    default:
      return false;
  }
}

absl::Status WithServer(const Transport& transport, ServerId server, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(transport.NameOf(server), ": ", status.message()));
}

absl::Status Membership::Retry(ServerId server, absl::Duration patience,
                               const std::function<absl::Status(absl::Duration)>& call) {
  const absl::Time begin = clock_.Now();
  std::minstd_rand jitter(server.value + 1);
  absl::Duration backoff = kFirstBackoff;
  while (true) {
    const absl::Duration left = patience - (clock_.Now() - begin);
    const absl::Status status = call(std::max(left, kLeastTimeout));
    if (status.ok()) return status;
    const absl::Duration wait = backoff * std::uniform_real_distribution<double>(0, 1)(jitter);
    if (!IsWorthRetrying(status) || clock_.Now() - begin + wait >= patience) {
      return WithServer(transport_, server, status);
    }
    absl::Notification never;
    never.WaitForNotificationWithTimeout(wait);
    backoff = std::min(2 * backoff, kLargestBackoff);
  }
}

absl::StatusOr<JoinReply> Membership::JoinOne(ServerId server, const JoinRequest& request) {
  JoinReply reply;
  const absl::Time begin = clock_.Now();
  const absl::Status status = Retry(server, silence_, [&](absl::Duration) {
    absl::StatusOr<JoinReply> r =
        transport_.Join(server, request, std::max(3 * silence_, kLongestLease));
    if (r.ok()) reply = *std::move(r);
    return r.status();
  });
  if (status.ok()) return reply;
  if (!IsWorthRetrying(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; worker ", request.worker(), " tried to join for ",
                   absl::FormatDuration(absl::Trunc(clock_.Now() - begin, absl::Milliseconds(1)))));
}

absl::StatusOr<std::vector<JoinReply>> Membership::JoinAll(JoinRequest request) {
  std::vector<JoinReply> replies;
  for (uint32_t s = 0; s < request.servers(); ++s) {
    absl::StatusOr<JoinReply> reply = JoinOne(ServerId{s}, request);
    if (!reply.ok()) return reply.status();
    if (s == 0) request.set_incarnation(reply->incarnation());
    if (!replies.empty() && reply->generation() != replies[0].generation()) {
      return WithServer(
          transport_, ServerId{s},
          absl::AbortedError(absl::StrCat("want the lead's generation ", replies[0].generation(),
                                          ", got ", reply->generation())));
    }
    replies.push_back(*std::move(reply));
  }
  return replies;
}

absl::Status Membership::LeaveOne(ServerId server, const LeaveRequest& request,
                                  absl::Duration patience) {
  return Retry(server, patience, [&](absl::Duration timeout) {
    return transport_.Leave(server, request, timeout).status();
  });
}

absl::Status Membership::LeaveAll(uint32_t server_count, const LeaveRequest& request,
                                  std::optional<ServerId> lost) {
  std::vector<ServerId> unreachable;
  for (uint32_t s = 0; s < server_count; ++s) {
    if (lost == ServerId{s}) continue;
    // Once for each before any is waited for: a server that is gone holds no other's worker back.
    const absl::Status status = LeaveOne(ServerId{s}, request, absl::ZeroDuration());
    if (!status.ok()) unreachable.push_back(ServerId{s});
  }
  absl::Status failure;
  for (const ServerId server : unreachable) {
    const absl::Status status = LeaveOne(server, request, silence_);
    if (!status.ok()) failure = status;
  }
  return failure;
}

}  // namespace thinwire::client
