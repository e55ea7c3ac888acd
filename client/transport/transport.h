// Transport: how a client reaches its servers. GrpcTransport goes over the network;
// InProcessTransport goes to servers in the same process. transport_contract.h tests what every
// implementation must do.
//
// A stream carries whole frames in both directions, in order, and is paced in both directions: the
// caller writes the next frame after OnWritten, and receives the next frame after ReadNext. Control
// calls do not share a stream's connection, so a heartbeat never waits behind a tensor.
#ifndef THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_
#define THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// Receives the events of a stream. The transport's threads call it, never from within a call into
// the stream. OnFrame and OnWritten may run at the same time. OnClosed is the last call and runs
// alone.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnFrame(ByteChain frame) = 0;
  // The transport has accepted the last frame, so the next one may be written, also from within
  // this call. Called once per Write, unless the stream ends first.
  virtual void OnWritten() = 0;
  // The stream has ended: OK if the server closed it in order, else the error.
  virtual void OnClosed(absl::Status status) = 0;
};

class FrameStream {
 public:
  // Ends the stream. No call reaches the observer after the destructor returns. REQUIRES: not
  // called from within the observer.
  virtual ~FrameStream() = default;
  // Sends FRAME; does nothing if the stream has ended. REQUIRES: OnWritten was called for the last
  // frame.
  virtual void Write(ByteChain frame) = 0;
  // Requests the next frame. Open requests the first. REQUIRES: OnFrame was called for every frame
  // requested before.
  virtual void ReadNext() = 0;
};

// Thread-safe.
class Transport {
 public:
  using HeartbeatDone = std::function<void(absl::StatusOr<HeartbeatReply>)>;

  virtual ~Transport() = default;

  // Returns the server's name for messages: "server 1 (10.0.0.7:5000)".
  virtual std::string NameOf(ServerId server) const = 0;

  // Opens a stream. If the server cannot be reached, OnClosed reports it. OBSERVER must outlive the
  // stream.
  virtual std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) = 0;

  // Blocks until the server answers. Errors: gRPC's codes; DeadlineExceeded after TIMEOUT.
  virtual absl::StatusOr<JoinReply> Join(ServerId server, const JoinRequest& request,
                                         absl::Duration timeout) = 0;
  virtual absl::StatusOr<LeaveReply> Leave(ServerId server, const LeaveRequest& request,
                                           absl::Duration timeout) = 0;

  // Returns at once; calls DONE exactly once, from a thread of the transport. Errors as in Join.
  virtual void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                         HeartbeatDone done) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_
