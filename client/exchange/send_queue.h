// SendQueue: the seeds, pushes and reads for one server that are unsent or unanswered.
//
//   seed    the shard's initial values, which the server has asked for; sent once
//   push    kept, with its bytes, until its verdict arrives; also the read for the next step
//   read    a request for parameters; kept until parameters of its step or a later one arrive
//
// A shard may have the pushes of several steps. Each answer states the last step that the worker
// may push before another answer arrives; the queue holds the pushes of later steps back.
//
// If the server has forgotten steps (ReadBeforePush), a push of step t is preceded by a read for t,
// and is sent when the parameters of t arrive. The read is sent at once, also if the worker has the
// parameters of t and still computes, so that the server knows its step: it may let others wait
// whose parameters this worker needs from other servers.
//
// The queue stores shard numbers, not messages. It encodes the seeds, and enters the replica's
// current versions in the reads, when it writes a message. After a lost connection the queue sends
// all unanswered entries again, except seeds, which the server requests again if it needs them; a
// repeated push has the same bytes as before.
#ifndef THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_
#define THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/replica/replica.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "proto/frame.h"

namespace thinwire::client {

// The approximate limit on the total size of the payloads in a message, in bytes. A message has at
// least one entry.
inline constexpr size_t kMessageBytes = size_t{1} << 20;

// Not thread-safe. A shard is "owned" if it is one of the shards given to the constructor.
// Functions that do not require an owned shard accept any shard number, because a server's message
// may name any number.
class SendQueue {
 public:
  // SHARDS: the shards that the server holds, in ascending order. FOLLOWS: the client applies all
  // deltas in the order of their arrival, so the server may start deltas where the last ones end.
  explicit SendQueue(std::vector<ShardId> shards, bool follows = false);

  bool owns(ShardId shard) const { return Find(shard) != nullptr; }

  // Queues the initial values of SHARD, unless they were queued since the last lost connection or
  // parameters of SHARD have arrived. REQUIRES: SHARD is owned.
  void Seed(ShardId shard);
  // Queues a read of SHARD for STEP, which replaces an earlier read of SHARD. REQUIRES: SHARD is
  // owned.
  void Read(ShardId shard, Step step);
  // Queues PUSH, which is also a read for the next step. REQUIRES: the shard of PUSH is owned, and
  // the step is above those of the shard's other pushes.
  void Push(PushEntry push);

  bool has_unsent() const { return !unsent_.empty() || !unsent_seeds_.empty(); }
  // Returns the total size of the payloads of unsent pushes, in bytes.
  size_t unsent_bytes() const { return unsent_bytes_; }
  // Returns whether a push of a step before STEP is unsent.
  bool HasUnsentBefore(Step step) const;
  // Adds the entries of the next message to FRAME and marks them as sent. Returns false if no entry
  // is unsent. PULL is the codec in which the server shall send whole parameters; nullopt requests
  // the published parameters instead.
  bool FillMessage(const Replica& replica, std::optional<CodecId> pull, WorkerFrame& frame);

  // Removes and returns the push of SHARD at STEP, whose verdict has arrived. Returns nullopt if no
  // such push awaits a verdict.
  std::optional<PushEntry> FinishPush(ShardId shard, Step step);
  // Returns true if a read of SHARD awaits the parameters for STEP.
  bool AwaitsParameters(ShardId shard, Step step) const;
  // Removes the reads of SHARD for the steps up to STEP, because the parameters for STEP have
  // arrived. The worker may push the steps up to LAST_PUSH before other parameters arrive. Returns
  // false if no read awaits these parameters.
  bool FinishRead(ShardId shard, Step step, Step last_push);
  // Records that the replica has the parameters of SHARD for STEP.
  void HoldParameters(ShardId shard, Step step);
  // Returns true if the replica has had the parameters of SHARD for STEP or a later step: the
  // worker may be computing with them.
  bool HasParameters(ShardId shard, Step step) const;
  // Queues the newest read of SHARD that was sent again. REQUIRES: SHARD awaits or has received
  // parameters.
  void ReadAgain(ShardId shard);
  // Returns true if a read of SHARD, for any step, awaits parameters.
  bool HasPendingRead(ShardId shard) const;

  // Marks all unanswered entries as unsent. Call this after the connection was lost.
  void ResendUnanswered();
  // Keeps back the pushes of SHARD until parameters for their steps arrive, except pushes of steps
  // that the server has finished: it then has the verdict, and answers reads for later steps only.
  // NEXT is the first step of this worker that the server has not finished. Call this if the server
  // has forgotten steps. REQUIRES: SHARD is owned; no entry was sent since ResendUnanswered.
  void ReadBeforePush(ShardId shard, Step next);

  // Returns the shards whose push awaits a verdict, in ascending order.
  std::vector<ShardId> unjudged() const;
  // Returns the pushes of SHARD that await verdicts, in ascending order of their steps. REQUIRES:
  // SHARD is owned.
  const std::deque<PushEntry>& unjudged_pushes(ShardId shard) const { return Find(shard)->pushes; }
  // Returns the shards whose read awaits parameters, in ascending order.
  std::vector<ShardId> unanswered() const;
  // Returns a description of the unanswered entries as text: "waited for the verdicts of step 41
  // (shards 3-9)"; empty if nothing is unanswered.
  std::string Awaited() const;

 private:
  struct Slot {
    ShardId shard;
    bool seed_queued = false;  // since the last lost connection
    bool queued = false;
    std::deque<PushEntry> pushes;  // without verdicts, in ascending order of their steps
    size_t sent_count = 0;         // of `pushes`, since the last lost connection
    std::optional<Step> push_end;  // pushes from this step on are held back; nullopt: none
    std::optional<Step> read;      // the newest unanswered read, sent or not
    // The newest unanswered read that was sent, or queued on its own, over this connection.
    std::optional<Step> asked;
    bool asks = false;             // `asked` is queued on its own
    std::optional<Step> answered;  // the newest step whose parameters have arrived
    std::optional<Step> held;      // the newest step whose parameters were in the replica

    bool has_unsent_push() const { return sent_count < pushes.size(); }
    bool may_push() const {
      return has_unsent_push() && (!push_end.has_value() || pushes[sent_count].step < *push_end);
    }
    // Returns the step of the next read that is sent without a push; nullopt: none.
    std::optional<Step> StepToAsk() const;
  };

  Slot* Find(ShardId shard);
  const Slot* Find(ShardId shard) const;
  void Queue(Slot& slot);
  // Adds unsent seeds to FRAME. Returns the size of their payloads in bytes.
  size_t AddSeeds(const Replica& replica, WorkerFrame& frame);
  // Sets the fields of ENTRY, a push or a read, that describe the requested parameters.
  template <typename Entry>
  void RequestParameters(const Replica& replica, std::optional<CodecId> pull, Entry& entry) const;

  const bool follows_;
  std::vector<Slot> slots_;
  std::deque<size_t> unsent_;        // indices in slots_ of the slots to send
  std::deque<size_t> unsent_seeds_;  // indices in slots_ of the seeds to send
  size_t unsent_bytes_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_SEND_QUEUE_H_
