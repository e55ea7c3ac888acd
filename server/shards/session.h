// Session reads one worker's stream. It parses and checks each frame as a whole, groups the seeds,
// pushes and reads by shard, and posts each group to the strand of its shard:
//
//   frame -> check -> events by shard -> strand: apply each event -> verdicts, answers -> streams
//                          |                   |
//                          +----- a token -----+     releasing the token requests the next frame
//
// Every payload and every posted group of a frame shares ownership of one token, which is released
// when all payloads of the frame are folded or dropped. The session holds at most one frame, or
// kLoggedFrames frames in a job with an event log, so that receiving goes on while the log flushes.
// It requests the next frame when it holds fewer and the server's memory has room (FrameBudget). It
// never waits for a round.
//
// A malformed frame ends the stream with InvalidArgument; no part of it is applied, and no frame
// behind it is read. A frame for another epoch ends the stream with FailedPrecondition.
//
// REQUIRES: calls of OnFrame and OnReadEnd do not overlap. OnWritten and OnBroken may be called
// concurrently with OnFrame and OnReadEnd.
#ifndef THINWIRE_SERVER_SHARDS_SESSION_H_
#define THINWIRE_SERVER_SHARDS_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/time/clock.h"
#include "proto/frame.h"
#include "server/shards/frame_budget.h"
#include "server/shards/stream/server_stream.h"

namespace thinwire {

class Counters;
class HostedModel;
class Journal;
class ModelSlot;
class StreamTable;

// The process that sends a stream.
struct Sender {
  WorkerId worker;
  Incarnation incarnation;
  uint32_t member = 0;

  bool operator==(const Sender&) const = default;
};

// The state that all sessions of a server share. Must outlive the sessions.
struct SessionScope {
  ServerId self;
  Epoch epoch;
  Generation generation;
  bool publishes = false;  // whether the job publishes deltas
  StreamTable& streams;
  Counters& counters;
  Journal& journal;
  FrameBudget& frames;
  const ModelSlot& model;
  Clock& clock;
  // Called with a frame's sender, not more often than in this interval by one stream.
  std::function<void(const Sender&)> heard;
  absl::Duration heard_interval;
};

class Session {
 public:
  static constexpr int kLoggedFrames = 4;

  Session(const SessionScope& scope, StreamLink link);
  ~Session();

  // Requests the first frame.
  void Start() { window_->Start(); }
  void OnFrame(const ByteChain& bytes);
  // Sends all queued verdicts, answers and waiting notices, then ends the stream with OK. Called
  // when the peer has closed its side of the stream.
  void OnReadEnd();
  void OnWritten(bool ok) { stream_->OnWritten(ok); }
  // Ends the stream. Called when the peer has disconnected.
  void OnBroken();

 private:
  // TOKEN is released when the frame's payloads are folded or dropped.
  absl::Status HandleFrame(const ByteChain& bytes, const std::shared_ptr<const void>& token);
  absl::Status CheckSender(const WorkerFrame& frame);

  const SessionScope& scope_;
  const std::function<absl::Status(WorkerId, Incarnation)> may_send_;  // StreamLink::check_sender
  const std::shared_ptr<ServerStream> stream_;
  const std::shared_ptr<FrameWindow> window_;  // outlives the session
  absl::Time heard_ = absl::InfinitePast();    // the last call of scope_.heard
  // The sender of the first frame. Later frames must have the same sender.
  std::optional<Sender> sender_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_SESSION_H_
