// SendQueue: the messages to one server that are unsent or unanswered.
//
//   seed    the shard's first values; kept until its first parameters arrive
//   push    kept, with its bytes, until its verdict; it is also the read for the next step
//   read    kept until the parameters of its step arrive
//
// The queue holds shard numbers. Seeds are encoded, and held versions filled in, when a message is
// written. After a lost connection the queue sends all unanswered entries again; a push again has
// the same bytes.
#ifndef THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_
#define THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/replica/replica.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

// The approximate limit on the payloads of one message. A message has at least one entry.
inline constexpr size_t kMessageBytes = size_t{1} << 20;

// Not thread-safe. "Owned" means one of the constructor's shards. Functions without that
// requirement accept any shard number, because a server's message may name any.
class SendQueue {
 public:
  // SHARDS: the server's shards, ascending.
  explicit SendQueue(std::vector<ShardId> shards);

  bool owns(ShardId shard) const { return Find(shard) != nullptr; }

  // Queues the first values of SHARD. REQUIRES: owned.
  void Seed(ShardId shard);
  // Queues a read of SHARD for STEP, in place of a former read. REQUIRES: owned.
  void Read(ShardId shard, Step step);
  // Queues PUSH, which is also a read for the next step. REQUIRES: owned; no push of the shard
  // awaits a verdict.
  void Push(PushEntry push);

  bool has_unsent() const { return !unsent_.empty(); }
  // Returns the payload bytes of unsent pushes.
  size_t unsent_bytes() const { return unsent_bytes_; }
  // Adds the entries of the next message to FRAME, and marks them as sent. Returns false if nothing
  // is unsent. PULL is the codec for whole parameters; nullopt requests what the server publishes.
  bool FillMessage(const Replica& replica, std::optional<CodecId> pull, WorkerFrame& frame);

  // Removes and returns the push of SHARD at STEP, which got its verdict. Returns nullopt if no
  // such push awaits one.
  std::optional<PushEntry> FinishPush(ShardId shard, Step step);
  // Returns whether a read of SHARD awaits the parameters of STEP.
  bool AwaitsParameters(ShardId shard, Step step) const;
  // Removes the read of SHARD for STEP, whose parameters arrived. Returns false if none awaits
  // them.
  bool FinishRead(ShardId shard, Step step);
  // Returns whether a read of SHARD awaits parameters, of any step.
  bool HasPendingRead(ShardId shard) const;

  // Marks all unanswered entries as unsent. For a connection that was lost.
  void ResendUnanswered();

  // Returns the shards whose push awaits a verdict, ascending.
  std::vector<ShardId> unjudged() const;
  // Returns the shards whose read awaits parameters, ascending.
  std::vector<ShardId> unanswered() const;
  // Returns what this worker waits for, as text: "waited for the verdicts of step 41 (shards 3-9)";
  // empty if nothing is unanswered.
  std::string Awaited() const;

 private:
  struct Slot {
    ShardId shard;
    bool seed = false;
    bool queued = false;
    size_t queued_bytes = 0;
    std::optional<PushEntry> push;
    std::optional<Step> read;
  };

  Slot* Find(ShardId shard);
  const Slot* Find(ShardId shard) const;
  void Queue(Slot& slot);
  void SetQueuedBytes(Slot& slot, size_t bytes);
  void AddEntries(const Slot& slot, const Replica& replica, std::optional<CodecId> pull,
                  WorkerFrame& frame);

  std::vector<Slot> slots_;
  std::deque<size_t> unsent_;  // indices of slots_
  size_t unsent_bytes_ = 0;    // the sum of queued_bytes
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_
