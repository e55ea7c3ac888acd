// Session: reads one worker's stream. Each frame is parsed and checked whole, its entries are
// grouped by shard, and each group is posted once to its shard's strand.
//
//   frame -> check -> events by shard -> strand: Apply each -> verdicts and answers -> streams
//                          |                   |
//                          +----- a token -----+     its last owner asks for the next frame
//
// The token hangs on every payload and on every posted group. So back-pressure waits until a fold
// is done, never for a round, and a stream's memory is one frame.
//
// A malformed frame ends its stream with InvalidArgument and changes nothing; one for another start
// of this server ends it with FailedPrecondition.
//
// REQUIRES: one OnFrame or OnReadEnd at a time; OnWritten and OnBroken may come meanwhile.
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
class Delivery;
class HostedModel;
class StreamTable;

// What all sessions of a server work with; it outlives them.
struct SessionScope {
  ServerId self;
  Epoch epoch;
  Generation generation;
  bool publishes = false;  // deltas may be read
  StreamTable& streams;
  Counters& counters;
  const Delivery& delivery;
  std::function<std::shared_ptr<const HostedModel>()> model;  // null before the first Join
  std::function<void(WorkerId, Incarnation)> heard;           // a sign of life
};

class Session {
 public:
  Session(const SessionScope& scope, StreamLink link);
  ~Session();

  // Asks for the first frame.
  void Start() { stream_->ReadOn(); }
  void OnFrame(const ByteChain& bytes);
  // The peer sends no more: says what is left, then ends in order.
  void OnReadEnd();
  void OnWritten(bool ok) { stream_->OnWritten(ok); }
  // The peer is gone.
  void OnBroken();

 private:
  absl::Status Take(const ByteChain& bytes);
  absl::Status CheckSender(const WorkerFrame& frame);

  const SessionScope& scope_;
  const std::shared_ptr<ServerStream> stream_;
  std::optional<std::pair<WorkerId, Incarnation>> sender_;  // who spoke first; nobody else may
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SESSION_H_
