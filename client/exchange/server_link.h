// ServerLink: everything a client keeps for one server: the server's epoch, the queue of unsent and
// unanswered messages, the stream, the heartbeats, and the server's liveness.
//
//   SendQueue -> NextMessage -> stream -> server -> stream -> OnFrame -> Observer::OnMessage
//
// The link opens a stream when there is something to send. After a loss it sends all unanswered
// entries again over a new stream: at once after the first loss, then after 100 ms, doubled up to
// 2 s and jittered, until a message proves that the stream works. One message is being written and
// one is ready to be written at a time. One message is decoded while the next one arrives.
//
// One heartbeat is pending at a time, so a slow server does not delay the heartbeats of others.
#ifndef THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
#define THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_

#include <cstdint>
#include <memory>
#include <random>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/send_queue.h"
#include "client/exchange/server_liveness.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "proto/frame.h"

namespace thinwire::client {

// Returns the error of a worker whose number another process has taken.
absl::Status FencedError(WorkerId worker);

// Lives on its loop. Construct it before its first task there, and destroy it after the loop has
// stopped.
class ServerLink {
 public:
  // Receives the link's events. Called on the loop.
  class Observer {
   public:
    virtual ~Observer() = default;
    // The server sent MESSAGE. Its epoch and generation are those of the joined run.
    virtual void OnMessage(ServerLink& link, const ServerFrame& message) = 0;
    // The queue has become shorter, so another push may be encoded.
    virtual void OnQueueRoom() = 0;
    // The link cannot continue.
    virtual void OnFailure(absl::Status failure) = 0;
  };

  // REPLY: the server's answer to Join. Seeds the shards that have no values there. PARTS and
  // OBSERVER must outlive the link.
  ServerLink(const ExchangeParts& parts, ServerId server, const JoinReply& reply,
             Incarnation incarnation, absl::Duration heartbeat_interval, Observer& observer);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  ServerId server() const { return server_; }
  SendQueue& queue() { return queue_; }
  ServerLiveness& liveness() { return liveness_; }

  // Starts the heartbeats.
  void StartHeartbeats() { SendHeartbeat(); }
  // Sends queued entries as far as the stream accepts messages.
  void SendQueued();
  // Ends the stream and the heartbeats for good.
  void Close();

 private:
  class OpenStream;

  ByteChain NextMessage();
  void OnFrame(uint64_t serial, const ByteChain& bytes);
  void OnWritten(uint64_t serial);
  void OnClosed(uint64_t serial, const absl::Status& status);
  void Reopen();
  absl::Duration Backoff();

  void SendHeartbeat();
  void OnHeartbeat(absl::Time sent, const absl::StatusOr<HeartbeatReply>& reply);
  void CheckHeartbeat(const absl::StatusOr<HeartbeatReply>& reply);

  // Returns the error if GENERATION or EPOCH differs from the joined run's.
  absl::Status CheckRun(Generation generation, Epoch epoch) const;

  const ExchangeParts& parts_;
  const ServerId server_;
  const Incarnation incarnation_;
  const Generation generation_;
  const Epoch epoch_;
  const absl::Duration heartbeat_interval_;
  const absl::Duration heartbeat_timeout_;
  Observer& observer_;

  SendQueue queue_;
  ServerLiveness liveness_;
  uint64_t serial_ = 0;  // of the stream; events of former streams are ignored
  std::unique_ptr<OpenStream> stream_;
  bool reopening_ = false;
  bool closed_ = false;
  int failed_count_ = 0;  // streams lost since the last message
  std::minstd_rand jitter_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SERVER_LINK_H_
