// InProcessTransport: a transport to servers in this process, with the faults of a real one at a
// test's command. One thread of its own carries all frames and heartbeats, so a stream keeps its
// order and a server hears one frame at a time.
#ifndef THINWIRE_CLIENT_IN_PROCESS_TRANSPORT_H_
#define THINWIRE_CLIENT_IN_PROCESS_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/loop.h"
#include "client/transport.h"
#include "common/byte_chain.h"
#include "common/clock.h"
#include "common/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// What a transport needs of a server. Join and Leave come from any thread, the rest from the
// transport's.
class InProcessServer {
 public:
  // The worker at the other end; thread-safe, harmless after the stream's end.
  struct Peer {
    std::function<void(ByteChain frame)> send;
    // Ends the stream, after what was sent; Closed does not follow.
    std::function<void(absl::Status status)> close;
  };

  virtual ~InProcessServer() = default;
  // STREAM is new; its frames are answered through PEER, now or later.
  virtual void Opened(uint64_t stream, Peer peer) = 0;
  virtual void Frame(uint64_t stream, const ByteChain& frame) = 0;
  // The worker has gone, or the connection broke.
  virtual void Closed(uint64_t stream) = 0;
  virtual absl::StatusOr<JoinReply> Join(const JoinRequest& request) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) = 0;
};

// Thread-safe. Streams end before the transport does, and the transport before the servers.
class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(std::vector<InProcessServer*> servers);
  ~InProcessTransport() override;

  std::string NameOf(ServerId server) const override;
  std::unique_ptr<Stream> Open(ServerId server, StreamObserver& observer) override;
  absl::StatusOr<JoinReply> Join(ServerId server, const JoinRequest& request,
                                 absl::Duration timeout) override;
  absl::StatusOr<LeaveReply> Leave(ServerId server, const LeaveRequest& request,
                                   absl::Duration timeout) override;
  void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                 HeartbeatDone done) override;

  // Faults. Each returns when it is in force.
  //
  // Breaks the server's streams: frames that were not delivered are lost, both ways.
  void DropStreams(ServerId server);
  // Refuses new streams and calls, and breaks what there is, until told otherwise.
  void Refuse(ServerId server, bool refuse);
  // The server hears and says nothing, and breaks nothing: calls time out.
  void Mute(ServerId server, bool mute);
  // Keeps what the server says until let go.
  void Hold(ServerId server, bool hold);
  // The next COUNT frames of the server are lost, each with its stream.
  void LoseReplies(ServerId server, int count);
  // The next COUNT frames to the server arrive twice.
  void RepeatFrames(ServerId server, int count);

 private:
  class InProcessStream;
  struct Faults {
    bool refuse = false;
    bool mute = false;
    bool hold = false;
    int lose_count = 0;
    int repeat_count = 0;
  };

  // All on the loop.
  void Connect(uint64_t number, ServerId server, StreamObserver* observer);
  void ToServer(uint64_t number, const ByteChain& frame);
  void ToWorker(uint64_t number, ByteChain frame);
  void Deliver(uint64_t number);
  void Break(uint64_t number, const absl::Status& status);
  void CloseByServer(uint64_t number, const absl::Status& status);
  void BreakAll(ServerId server);
  absl::Status Reachable(ServerId server);

  struct Wire {
    ServerId server;
    StreamObserver* observer = nullptr;
    int wanted_count = 1;  // frames that the worker has asked for
    std::vector<ByteChain> kept;
  };

  const std::vector<InProcessServer*> servers_;
  SteadyClock clock_;
  std::vector<Faults> faults_;      // lives on the loop
  std::map<uint64_t, Wire> wires_;  // lives on the loop
  uint64_t next_number_ = 1;        // lives on the loop
  const std::shared_ptr<client::Loop>
      loop_;  // servers may speak for longer than the transport lives
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_IN_PROCESS_TRANSPORT_H_
