// Session reads one worker's stream. It parses and checks each frame as a whole, groups the entries
// by shard, and posts each group to the strand of its shard:
//
//   frame -> check -> events by shard -> strand: apply each event -> verdicts, answers -> streams
//                          |                   |
//                          +----- a token -----+     the last owner of the token to release it
//                                                    requests the next frame
//
// Every payload and every posted group holds the token. Back-pressure therefore waits until a
// frame's payloads are folded, never for a round, and a stream uses the memory of one frame.
//
// A malformed frame ends its stream with InvalidArgument and changes nothing. A frame for another
// epoch ends its stream with FailedPrecondition.
//
// REQUIRES: at most one OnFrame or OnReadEnd at a time. OnWritten and OnBroken may be called
// concurrently with them.
#ifndef THINWIRE_SERVER_EDGE_SESSION_H_
#define THINWIRE_SERVER_EDGE_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/frame.h"
#include "server/edge/server_stream.h"

namespace thinwire {

class Counters;
class HostedModel;
class StreamTable;

// The state that all sessions of a server share. It outlives them.
struct SessionScope {
  ServerId self;
  Epoch epoch;
  Generation generation;
  bool publishes = false;  // whether published values may be read
  StreamTable& streams;
  Counters& counters;
  std::function<std::shared_ptr<const HostedModel>()> model;  // null before the first Join
  std::function<void(WorkerId, Incarnation)> heard;           // called for every frame
};

class Session {
 public:
  Session(const SessionScope& scope, StreamLink link);
  ~Session();

  // Requests the first frame.
  void Start() { stream_->AllowRead(); }
  void OnFrame(const ByteChain& bytes);
  // The peer has closed its side: sends all remaining entries, then ends the stream with OK.
  void OnReadEnd();
  void OnWritten(bool ok) { stream_->OnWritten(ok); }
  // The peer has disconnected.
  void OnBroken();

 private:
  absl::Status HandleFrame(const ByteChain& bytes);
  absl::Status CheckSender(const WorkerFrame& frame);

  const SessionScope& scope_;
  const std::shared_ptr<ServerStream> stream_;
  std::optional<std::pair<WorkerId, Incarnation>>
      sender_;  // of the first frame; later frames must match
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SESSION_H_
