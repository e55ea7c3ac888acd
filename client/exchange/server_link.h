// ServerLink: the client's state for one server: the server's epoch (identifies one start of the
// server's process), the queue of unsent and unanswered messages, the stream, the heartbeats, and
// the server's liveness.
//
//   SendQueue -> NextMessage -> stream -> server -> stream -> OnFrame -> Observer::OnMessage
//
//            an entry is queued              a message arrives
//   kIdle ----------------------> kOpen <------------------------ kReopened
//                                   |                              |   ^
//                          the stream ends                         |   | opens a stream, also
//                                   v        the stream ends       |   | without entries
//                               kPausing <-------------------------+   |
//                                   | the wait is over, or a heartbeat |
//                                   | is answered after failed ones    |
//                                   +--------------> kLost ------------+
//                                                      ^
//   another epoch or generation --> kJoining ----------+  the server accepts the Join
//                                       |     ^
//                          the Join fails     the next heartbeat is answered
//                                       v     |
//                                        kAway
//
// The wait is zero after the first loss, and random (client/transport/backoff.h) after the loss of
// a reopened stream. The new stream begins with all unanswered entries, or with an empty message,
// which proves that the server accepts the stream. After a suspension, and after FailedPrecondition
// from the stream, the link sends nothing in any state before the server has answered a call.
//
// A server that was started again has a new epoch. If it has recovered its state, it accepts the
// Join of the same incarnation and run, and gets the same payloads under the new epoch. A server
// without its state refuses, which is a failure. A server that continues from a checkpoint before
// this process's Join does not know the process: the lead, joined again, announces it.
//
// A server that has lost steps has a higher generation. In modes with rounds, all servers continue
// from one earlier step, which the link reports as a rollback. In the other modes, the server
// continues alone: the link adopts its generation, reads all its shards in full, and keeps unjudged
// pushes until the parameters of their steps arrive. These show that the other workers have come
// back too, so the push is not too early.
#ifndef THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
#define THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/heartbeats.h"
#include "client/exchange/send_queue.h"
#include "client/exchange/server_liveness.h"
#include "client/transport/backoff.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/time/log_limit.h"
#include "common/time/task_scope.h"
#include "proto/control.pb.h"
#include "proto/frame.h"

namespace thinwire::client {

// Returns the error of a worker whose number another process has taken, or that has lost one of its
// members.
absl::Status FencedError(const ClientOptions& options);

// Lives on the event loop `parts.loop`: only tasks of this loop call its functions.
class ServerLink {
 public:
  // Receives the link's events. All calls come from tasks of the link's event loop.
  class Observer {
   public:
    virtual ~Observer() = default;
    // The server sent MESSAGE. The epoch and generation of MESSAGE equal those in the server's
    // reply to Join.
    virtual void OnMessage(ServerLink& link, const ServerFrame& message) = 0;
    // The send queue has become shorter, so the client may encode another push.
    virtual void OnQueueRoom() = 0;
    // The server continues alone from an earlier state. The replica has forgotten its shards.
    virtual void OnAdopted(ServerLink& link) = 0;
    // The link has failed for good, with FAILURE.
    virtual void OnFailure(absl::Status failure) = 0;
    // The servers of a job with rounds continue from an earlier step under GENERATION. The link
    // cannot be used further.
    virtual void OnRollback(Generation generation) = 0;
  };

  // REJOIN: the request that joins the server again, with the worker's incarnation and run. REPLY:
  // the server's reply to the first Join. PARTS, REJOIN and OBSERVER must outlive the link.
  ServerLink(const ExchangeParts& parts, ServerId server, const JoinRequest& rejoin,
             const JoinReply& reply, absl::Duration heartbeat_interval, Observer& observer);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  ServerId server() const { return server_; }
  SendQueue& queue() { return queue_; }
  ServerLiveness& liveness() { return liveness_; }

  // Starts the heartbeats.
  void StartHeartbeats() { heartbeats_.SendNow(); }
  // Sends the next heartbeat now, or as soon as the pending one is answered.
  void HeartbeatNow() { heartbeats_.SendNow(); }
  // Sends queued entries while the stream accepts messages.
  void SendQueued();
  // Call this after the client's own process was suspended. Restarts the measurement of silence,
  // and sends no entry before the server has answered a new heartbeat: another process may have
  // taken the worker's number meanwhile, and the server may have been restarted.
  void Resume();
  // Ends the stream and the heartbeats. The link cannot be used afterwards.
  void Close();

 private:
  class OpenStream;
  enum class State {
    kIdle,      // no stream was needed yet
    kOpen,      // there is a stream, and none was lost since the last received message
    kReopened,  // there is a stream, which has brought no message since the loss
    kPausing,   // the stream was lost; waits before it opens another one
    kLost,      // the stream was lost; opens another one as soon as it may send
    kJoining,   // the server has another epoch; a call of Join is pending
    kAway,      // the server has another epoch; the last Join has failed
    kClosed,    // after Close
  };

  bool has_stream() const { return state_ == State::kOpen || state_ == State::kReopened; }
  // Returns true if the link may open a stream and send entries.
  bool may_send() const {
    return (has_stream() || state_ == State::kIdle || state_ == State::kLost) &&
           !unconfirmed_since_.has_value();
  }
  void OpenNewStream();
  // Returns the next message; empty if no entry is unsent.
  ByteChain NextMessage();
  // Returns a message without entries.
  WorkerFrame EmptyFrame() const;
  // Returns the bytes of FRAME and counts them as sent.
  ByteChain ToBytes(const WorkerFrame& frame);
  void OnFrame(uint64_t serial, const ByteChain& bytes);
  void OnWritten(uint64_t serial);
  void OnClosed(uint64_t serial, const absl::Status& status);
  // Ends the stream, if there is one, and marks all unanswered entries for sending.
  void LoseStream(const absl::Status& status);
  void ReopenAfter(absl::Duration wait);

  HeartbeatRequest MakeHeartbeat() const;
  void OnHeartbeat(absl::Time sent, const HeartbeatRequest& request,
                   const absl::StatusOr<HeartbeatReply>& reply);
  void CheckReply(absl::Time sent, const HeartbeatReply& reply);
  // Fails because of a deal that is not valid.
  void FailForDeals(const absl::Status& status);
  // Records that the server has answered a request, sent at SENT, that proves the worker's number
  // and the server's epoch.
  void Confirm(absl::Time sent);

  // Joins the server, which has another epoch than the link, again.
  void Rejoin();
  void OnJoined(absl::Time sent, absl::StatusOr<JoinReply> reply);
  void OnJoinError(const absl::Status& status);

  // Returns true if the link can go on with a server of GENERATION. Otherwise reports the failure
  // or the rollback.
  bool AcceptsGeneration(Generation generation);
  // Goes on with a server that continues alone from an earlier state, under GENERATION.
  void Adopt(Generation generation);

  const ExchangeParts& parts_;
  const ServerId server_;
  const JoinRequest& rejoin_;
  const Incarnation incarnation_;
  const bool by_round_;
  Generation generation_;
  Epoch epoch_;
  Observer& observer_;
  Heartbeats heartbeats_;

  State state_ = State::kIdle;
  SendQueue queue_;
  ServerLiveness liveness_;
  uint64_t serial_ = 0;  // the current stream's number; events of earlier streams are ignored
  std::unique_ptr<OpenStream> stream_;  // null unless has_stream()
  Backoff backoff_;
  // Set if the server may have been started again, or another process may have taken the worker's
  // number, until a heartbeat or Join sent after this time is answered.
  std::optional<absl::Time> unconfirmed_since_;
  absl::Time lost_since_;  // in kJoining and kAway: the last sign of life of the former process
  LogLimit loss_lines_{10, absl::Seconds(10)};
  LogLimit return_lines_{10, absl::Seconds(10)};
  const TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
