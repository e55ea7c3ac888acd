// Transport: how a client reaches its servers. Two implementations: gRPC (grpc_transport.h) and
// in-process (in_process_transport.h, which carries the tests).
//
// A stream is a row of whole frames each way, and both ways are paced: a frame is written when the
// last one is on its way, and read when it was asked for. Control calls travel apart from streams,
// so that a heartbeat never waits behind a tensor.
#ifndef THINWIRE_CLIENT_TRANSPORT_H_
#define THINWIRE_CLIENT_TRANSPORT_H_

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

// Hears a stream; called from the transport's threads, OnFrame and OnWritten possibly at once,
// never from within a call into the stream. OnClosed is the last call and alone.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnFrame(ByteChain frame) = 0;
  // The frame given to the last Write is on its way: the next may be written, also from here.
  virtual void OnWritten() = 0;
  // Not OK, or OK after the server closed in order.
  virtual void OnClosed(absl::Status status) = 0;
};

class Stream {
 public:
  // Ends the stream if it has not ended; after that no call reaches the observer. REQUIRES: not
  // called from within the observer.
  virtual ~Stream() = default;
  // REQUIRES: the last frame's OnWritten has come.
  virtual void Write(ByteChain frame) = 0;
  // Lets the next frame come; Open has asked for the first. REQUIRES: as many calls of OnFrame as
  // frames asked for have come.
  virtual void ReadNext() = 0;
};

// Thread-safe.
class Transport {
 public:
  using HeartbeatDone = std::function<void(absl::StatusOr<HeartbeatReply>)>;

  virtual ~Transport() = default;

  // How the server is called in messages: "server 1 (10.0.0.7:5000)".
  virtual std::string NameOf(ServerId server) const = 0;

  // Opens a stream; a server that cannot be reached is told by OnClosed.
  virtual std::unique_ptr<Stream> Open(ServerId server, StreamObserver& observer) = 0;

  // Blocking calls. Errors: those of gRPC, DeadlineExceeded after TIMEOUT.
  virtual absl::StatusOr<JoinReply> Join(ServerId server, const JoinRequest& request,
                                         absl::Duration timeout) = 0;
  virtual absl::StatusOr<LeaveReply> Leave(ServerId server, const LeaveRequest& request,
                                           absl::Duration timeout) = 0;

  // Calls DONE once, from a thread of the transport's, with the same errors.
  virtual void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                         HeartbeatDone done) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TRANSPORT_H_
