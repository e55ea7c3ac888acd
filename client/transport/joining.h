// Joining: joins all servers of a job, with retries. A state machine on an executor: it never
// blocks.
//
//       Start
//         v                  reply                       replies of all
//   joining the lead ----------------> joining the others --------------> done(replies)
//     ^   |                                  |
//     |   | refused, Cancel, timeout         | the same, or a higher generation than the lead's
//     |   v                                  v
//     |   done(error) <------- leaving the servers joined so far
//     |                                      |
//     +--------------------------------------+ again at the lead
//
// In a job with rounds, servers that continue from an earlier step have a new, higher generation,
// which the lead reaches first. A server with a lower generation than the lead is called again
// until it has followed. If a server has a higher one, the calls begin again at the lead.
//
// The lead comes first, because it assigns the incarnation. The others are called at the same time.
// A call that fails because the server is unreachable is retried after a random wait (backoff.h).
#ifndef THINWIRE_CLIENT_TRANSPORT_JOINING_H_
#define THINWIRE_CLIENT_TRANSPORT_JOINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/backoff.h"
#include "client/transport/leaving.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "common/time/task_scope.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// How long a worker waits while it joins, and how it reports its wait.
struct JoinWait {
  // A server that is unreachable, or that has not followed a rollback yet, is called again for this
  // long.
  absl::Duration start_timeout;
  // If another process has the worker's number, the lead is called again for this long. The other
  // process may be about to end.
  absl::Duration in_use_timeout;
  // The timeout of one call. At least a lease, because the lead answers only when the lease of an
  // earlier process ends.
  absl::Duration call_timeout;
  // Receives texts such as "waiting for server 0 (10.0.0.7:7000): connection refused", which are
  // also logged: after `first_notice`, then every `notice_interval`.
  std::function<void(const std::string& text)> report = [](const std::string&) {};
  absl::Duration first_notice = absl::Seconds(1);
  absl::Duration notice_interval = absl::Seconds(5);
};

// Joins server 0, the lead, and then the other servers under the incarnation (the number of this
// process among the processes of the worker) and the run of the lead's reply. The lead assigns the
// incarnation unless the request states one.
//
// If a server refuses a stated incarnation, which was assigned after the step from which the
// servers continue, the lead assigns a new one. Fails if another process has taken the worker's
// number.
//
// Lives on the executor LOOP.
class Joining {
 public:
  // Receives one reply per server. In a job with rounds, all replies have the same generation. Or
  // receives the error of the first server that could not be joined; Cancelled after Cancel. The
  // worker has then left the servers that it had joined.
  using Done = std::function<void(absl::StatusOr<std::vector<JoinReply>>)>;

  // LEAST: the least generation of a job with rounds. TRANSPORT must outlive this object. LOOP is
  // shared with pending calls of the transport.
  Joining(Transport& transport, std::shared_ptr<Executor> loop, JoinWait wait, JoinRequest request,
          Generation least, Done done);

  // Begins. DONE is called once and may destroy this object.
  void Start();
  // Ends all waits, now and in the future, with Cancelled. Does nothing after DONE. REQUIRES: not
  // called from JoinWait::report.
  void Cancel();

 private:
  enum class State { kNew, kJoining, kLeaving, kDone };
  // The Join of one server in the present round.
  struct Server {
    Backoff backoff;
    std::string problem;
    bool calling = false;
    // Of the present call or pause; the end of an earlier one is ignored. 0: there is none.
    uint64_t serial = 0;
    std::optional<JoinReply> reply;
  };

  // Returns the error after Cancel, with the name of the first server that is not joined.
  absl::Status Stopped() const;
  // Joins all servers, from the lead on.
  void StartRound();
  // Joins the servers from FIRST up to before END.
  void StartServers(uint32_t first, uint32_t end);
  void Call(uint32_t server);
  void OnReply(uint32_t server, absl::StatusOr<JoinReply> reply);
  void OnJoined(uint32_t server, JoinReply reply);
  // Calls SERVER again after a pause, or ends the round.
  void RetryAfter(uint32_t server, const absl::Status& status);
  // REASON: OK if the calls begin again because a server is ahead of the lead.
  void EndRound(absl::Status reason);
  // Leaves the servers that are joined, or may be because their calls are pending.
  void LeaveThen(std::function<void()> then);
  void AfterRound(const absl::Status& reason);
  void Finish(absl::StatusOr<std::vector<JoinReply>> result);
  // Reports the present problems when it is time.
  void Notice();
  void ScheduleNotice();

  Transport& transport_;
  const std::shared_ptr<Executor> loop_;
  const JoinWait wait_;
  JoinRequest request_;  // of the next round's first call
  Generation least_;
  Done done_;

  State state_ = State::kNew;
  bool cancelled_ = false;
  // Of the present round:
  JoinRequest call_;             // with the incarnation and the run of the lead's reply
  std::vector<Server> servers_;  // indexed by server number
  bool was_behind_ = false;      // a server had a lower generation at first
  absl::Time begin_;             // when the last servers were called for the first time
  absl::Time next_notice_;
  std::optional<TaskScope> notices_;  // of the tasks that report problems
  uint64_t serial_ = 0;               // the largest Server::serial so far
  std::unique_ptr<Leaving> leaving_;
  TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_JOINING_H_
