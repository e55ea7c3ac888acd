// Membership: joining and leaving a job's servers, the calls that the training thread makes itself.
//
// A server that cannot be reached is asked again, after 100 ms doubled up to 5 s and jittered,
// until it was silent for too long. What will not change by asking again is an error at once.
#ifndef THINWIRE_CLIENT_MEMBERSHIP_H_
#define THINWIRE_CLIENT_MEMBERSHIP_H_

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport.h"
#include "common/clock.h"
#include "common/ids.h"

namespace thinwire::client {

// Whether a call that failed like this may succeed when it is made again.
bool IsWorthRetrying(const absl::Status& status);

// STATUS with the server's name before its message.
absl::Status WithServer(const Transport& transport, ServerId server, const absl::Status& status);

// Not thread-safe.
class Membership {
 public:
  // TRANSPORT and CLOCK outlive this.
  Membership(Transport& transport, Clock& clock, absl::Duration silence)
      : transport_(transport), clock_(clock), silence_(silence) {}

  // Joins the lead, which gives the incarnation, and with that the others: one reply per server.
  // Errors: the first server's that could not be joined; Aborted if they are not of one generation.
  absl::StatusOr<std::vector<JoinReply>> JoinAll(JoinRequest request);

  // Leaves every server but LOST; the one that failed last is the error, and the others are told
  // all the same.
  absl::Status LeaveAll(uint32_t server_count, const LeaveRequest& request,
                        std::optional<ServerId> lost);

 private:
  absl::Status Retry(ServerId server, absl::Duration patience,
                     const std::function<absl::Status(absl::Duration)>& call);
  absl::StatusOr<JoinReply> JoinOne(ServerId server, const JoinRequest& request);
  absl::Status LeaveOne(ServerId server, const LeaveRequest& request, absl::Duration patience);

  Transport& transport_;
  Clock& clock_;
  const absl::Duration silence_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_MEMBERSHIP_H_
