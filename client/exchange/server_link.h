// ServerLink: the client's state for one server: the server's epoch (identifies one start of the
// server's process), the queue of unsent and unanswered messages, the stream, the heartbeats, and
// the server's liveness.
//
//   SendQueue -> NextMessage -> stream -> server -> stream -> OnFrame -> Observer::OnMessage
//
// The link opens a stream when the queue has an entry to send. After the stream is lost, the link
// sends all unanswered entries again over a new stream, or an empty message if there are none: the
// message proves that the server accepts the stream. The link opens the new stream at once after
// the first loss, and after a random wait (client/transport/backoff.h) after each further loss. A
// received message proves that the stream works, so the next loss counts as the first again. At any
// time, at most one message is being written and one more is ready to be written. One message is
// decoded while the next one arrives.
//
// A server that was started again has a new epoch, which a heartbeat's reply or a message shows.
// The link then joins the server again, under the same incarnation and run. A server that has
// recovered its state accepts the Join, and the link sends all unanswered entries again, with the
// same payloads, under the new epoch. A server without its state refuses, which is a failure. A
// server that continues from a checkpoint before this process's Join does not know the process: the
// link joins the lead again, which announces the process to the server. After this and after any
// other error of the Join, the next heartbeat's reply starts another Join. Heartbeats therefore
// determine how soon the client returns to a server: a reply after failed heartbeats also ends the
// random wait for the stream.
//
// A server that has lost steps has a higher generation. In modes with rounds, all servers continue
// from one earlier step, which the link reports as a rollback. In the other modes, the server
// continues alone, and the link adopts its generation:
//
//   replica         reads all shards of the server in full
//   reads           sent again
//   unjudged pushes kept until the parameters of their steps arrive, and then sent; these parameters
//                   show that the other workers have come back too, so the push is not too early
//
// The link uploads the initial values of a shard when the server asks for them.
//
// The heartbeats to the lead, server 0, state the deals that the worker knows, and bring new ones
// (deal_book.h).
//
// Each link has at most one pending heartbeat, and a slow server does not delay the heartbeats to
// other servers.
#ifndef THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
#define THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
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

// Returns the error of a worker whose number another process has taken.
absl::Status FencedError(WorkerId worker);

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
  void StartHeartbeats() { SendHeartbeat(); }
  // Sends the next heartbeat now, or as soon as the pending one is answered.
  void HeartbeatNow();
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

  // Returns true if the link may open a stream and send entries.
  bool may_send() const {
    return !closed_ && !reopening_ && !lost_since_.has_value() && !unconfirmed_since_.has_value();
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

  void SendHeartbeat();
  void OnHeartbeat(absl::Time sent, const HeartbeatRequest& request,
                   const absl::StatusOr<HeartbeatReply>& reply);
  void CheckHeartbeat(absl::Time sent, const HeartbeatRequest& request,
                      const absl::StatusOr<HeartbeatReply>& reply);
  void CheckReply(absl::Time sent, const HeartbeatReply& reply);
  // Fails because of a deal that is not valid.
  void FailForDeals(const absl::Status& status);
  // Records that the server has answered a request, sent at SENT, that proves the worker's number
  // and the server's epoch.
  void Confirm(absl::Time sent);

  // Joins the server, which has another epoch than the link, again.
  void Rejoin();
  void OnJoined(absl::Time sent, const absl::StatusOr<JoinReply>& reply);
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
  const absl::Duration heartbeat_interval_;
  const absl::Duration heartbeat_timeout_;
  uint64_t heartbeat_count_ = 0;  // number of heartbeats sent
  bool heartbeat_pending_ = false;
  bool heartbeat_wanted_ = false;  // another heartbeat follows the pending one at once
  Observer& observer_;

  SendQueue queue_;
  ServerLiveness liveness_;
  uint64_t serial_ = 0;  // the current stream's number; events of earlier streams are ignored
  std::unique_ptr<OpenStream> stream_;
  bool closed_ = false;
  bool stream_lost_ = false;  // true if a stream was lost since the last received message
  bool reopening_ = false;    // true during the wait before a new stream is opened
  Backoff backoff_;
  bool heartbeat_failed_ = false;  // the result of the last heartbeat
  // Set if the server may have been started again, or another process may have taken the worker's
  // number, until a heartbeat or Join sent after this time is answered.
  std::optional<absl::Time> unconfirmed_since_;
  // The last sign of life of the server's former process; set until the link has joined the new
  // process.
  std::optional<absl::Time> lost_since_;
  LogLimit loss_lines_{10, absl::Seconds(10)};
  LogLimit return_lines_{10, absl::Seconds(10)};
  bool joining_ = false;  // true while a call of Join is pending
  const TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
