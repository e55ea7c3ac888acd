// Transport: the connections of a client to its servers. GrpcTransport uses the network;
// InProcessTransport, for tests, connects to servers in the same process. transport_contract.h
// tests the requirements on every implementation.
//
// A stream transfers whole frames in both directions, in order. Each direction has flow control:
// the caller may write the next frame only after OnWritten, and receives the next frame only after
// ReadNext. Join, Leave and Heartbeat do not share a connection with a stream or with Masters, so a
// heartbeat never waits for the transfer of a tensor.
#ifndef THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_
#define THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "proto/control.pb.h"

namespace thinwire {

// Why a worker leaves: the fields of LeaveRequest.
struct LeaveReason {
  bool finished = false;  // the job has no later step, so the lead appoints no other evaluator
  bool failed = false;    // because of an error
  std::string diverged;   // the symptom, if the run has diverged
};

// Receives the events of a stream. The transport's threads call the observer, but never from within
// a call of a FrameStream function. OnFrame and OnWritten may run at the same time. OnClosed is the
// last call and does not overlap with another call.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnFrame(ByteChain frame) = 0;
  // The transport has accepted the frame of the last Write. The observer may write the next frame,
  // even from within OnWritten. Called once per Write, unless the stream ends first.
  virtual void OnWritten() = 0;
  // The stream has ended. STATUS is OK if the server closed the stream in order, else the error.
  virtual void OnClosed(absl::Status status) = 0;
};

class FrameStream {
 public:
  // Ends the stream. The observer is not called after the destructor has returned. REQUIRES: not
  // called from within a function of the observer.
  virtual ~FrameStream() = default;
  // Sends FRAME; does nothing if the stream has ended. REQUIRES: OnWritten was called for the
  // previous frame.
  virtual void Write(ByteChain frame) = 0;
  // Requests the next frame; Open has already requested the first frame. REQUIRES: OnFrame was
  // called for every frame requested so far.
  virtual void ReadNext() = 0;
};

// MastersSize adds up the memory of the chunks of a Masters call. Not thread-safe.
class MastersSize {
 public:
  explicit MastersSize(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Adds a chunk. Errors: DataLoss if the chunks now take more than the limit.
  absl::Status Add(const MastersChunk& chunk) {
    bytes_ += chunk.ByteSizeLong() + sizeof(chunk);
    if (bytes_ <= most_bytes_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("masters: too long (expected at most ", most_bytes_,
                                            " bytes, got ", bytes_, ")"));
  }

 private:
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
};

// Thread-safe.
class Transport {
 public:
  template <typename Reply>
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  // Cancels pending control calls, whose DONE may then not be called.
  virtual ~Transport() = default;

  // Returns the server's name for messages: "server 1 (10.0.0.7:5000)".
  virtual std::string NameOf(ServerId server) const = 0;

  // Opens a stream. If the server cannot be reached, OBSERVER receives OnClosed with the error.
  // OBSERVER must outlive the stream.
  virtual std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) = 0;

  // Send a control call to SERVER and return at once. DONE receives the reply or the error, exactly
  // once, from a thread of the transport. Errors: gRPC's status codes; DeadlineExceeded after
  // TIMEOUT.
  virtual void Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
                    Done<JoinReply> done) = 0;
  virtual void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                         Done<HeartbeatReply> done) = 0;
  virtual void Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
                     Done<LeaveReply> done) = 0;
  // Requests the exact fp32 parameters of the server's shards, or their moving averages. The chunks
  // may arrive in any order. Errors: also DataLoss if the chunks take more than MOST_BYTES
  // (MastersSize).
  virtual void Masters(ServerId server, const MastersRequest& request, uint64_t most_bytes,
                       absl::Duration timeout, Done<std::vector<MastersChunk>> done) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TRANSPORT_TRANSPORT_H_
