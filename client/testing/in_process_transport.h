// InProcessTransport: a Transport to servers in this process. Tests can inject the faults of a real
// network. One executor carries all frames and heartbeats, so the frames of a stream stay in order
// and a server receives one frame at a time. Another one carries the calls of Join and Leave, in
// order, and those of Masters. Unless the caller says otherwise, each has a thread of its own.
#ifndef THINWIRE_CLIENT_TESTING_IN_PROCESS_TRANSPORT_H_
#define THINWIRE_CLIENT_TESTING_IN_PROCESS_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/time/executor.h"
#include "common/time/thread_executor.h"
#include "proto/control.pb.h"

namespace thinwire {

// A server that an InProcessTransport connects to. Join and Leave may block; the transport calls
// them from a thread of their own.
class InProcessServer {
 public:
  // The functions with which a server uses a stream to a worker. Thread-safe. Calls after the end
  // of the stream have no effect.
  struct Peer {
    std::function<void(ByteChain frame)> send;
    // Ends the stream after all frames that were already sent. The transport then does not call
    // Closed.
    std::function<void(absl::Status status)> close;
  };

  virtual ~InProcessServer() = default;
  // A worker opened the stream with number STREAM. The server may send frames to the worker through
  // PEER at any time.
  virtual void Opened(uint64_t stream, Peer peer) = 0;
  virtual void Frame(uint64_t stream, const ByteChain& frame) = 0;
  // The worker closed the stream, or the connection broke.
  virtual void Closed(uint64_t stream) = 0;
  virtual absl::StatusOr<JoinReply> Join(const JoinRequest& request) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) = 0;
  // May block. Most servers of tests have no masters.
  virtual absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest&) {
    return absl::UnimplementedError("this server has no masters");
  }
};

// Thread-safe. The servers must outlive the transport, and the transport must outlive its streams.
class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(std::vector<InProcessServer*> servers);
  // Carries everything on executors of TIME, for example in virtual time. TIME must outlive the
  // transport.
  InProcessTransport(std::vector<InProcessServer*> servers, ExecutorFactory& time);
  ~InProcessTransport() override;

  std::string NameOf(ServerId server) const override;
  std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) override;
  void Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
            Done<JoinReply> done) override;
  void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                 Done<HeartbeatReply> done) override;
  void Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
             Done<LeaveReply> done) override;
  void Masters(ServerId server, const MastersRequest& request, uint64_t most_bytes,
               absl::Duration timeout, Done<std::vector<MastersChunk>> done) override;

  // Fault injection. Each function below returns when the fault is in effect.
  //
  // Breaks the server's streams. Undelivered frames in both directions are lost.
  void DropStreams(ServerId server);
  // If REFUSE is true, breaks the server's streams and refuses new streams and calls until Refuse
  // is called with false.
  void Refuse(ServerId server, bool refuse);
  // While MUTE is true, discards all frames and calls to and from the server but keeps its streams
  // open. Calls then fail with DeadlineExceeded.
  void Mute(ServerId server, bool mute);
  // Hold(server, true) keeps back all frames from the server until Hold(server, false) is called.
  void Hold(ServerId server, bool hold);
  // Discards each of the next COUNT frames from the server, and breaks the stream of the frame.
  void LoseReplies(ServerId server, int count);
  // Delivers each of the next COUNT frames to the server twice.
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
  struct Connection {
    ServerId server;
    StreamObserver* observer = nullptr;
    int requested_count = 1;         // frames that the worker has requested and not received
    std::vector<ByteChain> waiting;  // undelivered frames from the server, oldest first
  };

  // Only tasks of loop_ call the seven functions below.
  void Connect(uint64_t number, ServerId server, StreamObserver* observer);
  void ToServer(uint64_t number, const ByteChain& frame);
  void ToWorker(uint64_t number, ByteChain frame);
  void Deliver(uint64_t number);
  void Break(uint64_t number, const absl::Status& status);
  void CloseByServer(uint64_t number, const absl::Status& status);
  void BreakAll(ServerId server);
  // Makes a control CALL to SERVER, which returns the reply for DONE, on LOOP.
  template <typename Reply>
  void Call(Executor& loop, ServerId server, absl::Duration timeout,
            std::function<absl::StatusOr<Reply>(InProcessServer&)> call, Done<Reply> done);

  const std::vector<InProcessServer*> servers_;
  const std::unique_ptr<Threads> threads_;  // null if the executors come from elsewhere
  // Only tasks of loop_ use the three members below.
  std::vector<Faults> faults_;
  std::map<uint64_t, Connection> connections_;
  uint64_t next_number_ = 1;

  // Shared with every Peer, because servers may call a Peer after the transport is destroyed.
  const std::shared_ptr<Executor> loop_;
  // Makes the calls of Join, Leave and Masters, in which a server may block.
  const std::unique_ptr<Executor> membership_loop_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TESTING_IN_PROCESS_TRANSPORT_H_
