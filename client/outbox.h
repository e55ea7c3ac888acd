// Outbox: what one server still owes an answer to, and what of it must be sent, now or again.
//
//   seed    until the shard's first parameters have come
//   push    its bytes are kept until its verdict; it is also the read for the step after it
//   read    until the parameters of its step have come
//
// It holds shard numbers; what is said of a shard is chosen when its message is written. After a
// lost connection all that has no answer is sent again, a push with the same bytes.
#ifndef THINWIRE_CLIENT_OUTBOX_H_
#define THINWIRE_CLIENT_OUTBOX_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "client/replica.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

// A message holds payloads up to about this, and at least one entry.
inline constexpr size_t kMessageBytes = size_t{1} << 20;

// Not thread-safe. The functions that take a shard REQUIRE that the outbox is for it, except those
// that take what a server said: they tell by their result that nothing was waiting for it.
class Outbox {
 public:
  // SHARDS rises.
  explicit Outbox(std::vector<ShardId> shards);

  void Seed(ShardId shard);
  void Read(ShardId shard, Step step);
  // REQUIRES: no push of the shard waits for its verdict.
  void Push(PushEntry push);

  bool has_unsent() const { return !unsent_.empty(); }
  // Of the pushes that are to be sent.
  size_t unsent_bytes() const { return unsent_bytes_; }
  // Adds the next message's entries to FRAME; false if there is nothing to send. Parameters are
  // wanted as masters in PULL or, with none, as what is published.
  bool TakeNext(const Replica& replica, std::optional<CodecId> pull, WorkerFrame& frame);

  // The push that VERDICT is about, which is then forgotten.
  std::optional<PushEntry> TakeVerdict(ShardId shard, Step step);
  // Whether the parameters of STEP are what SHARD waits for; they then count as come.
  bool TakeAnswer(ShardId shard, Step step);
  // Whether they are, and stay so: more of them comes.
  bool Awaits(ShardId shard, Step step) const;
  // Whether the parameters of a step are still to come.
  bool AwaitsAnswer(ShardId shard) const;

  // The connection was lost: sends again what has no answer.
  void Resend();

  // The shards that wait for a verdict, or for parameters; rising.
  std::vector<ShardId> unjudged() const;
  std::vector<ShardId> unanswered() const;

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
  void Say(const Slot& slot, const Replica& replica, std::optional<CodecId> pull,
           WorkerFrame& frame);

  std::vector<Slot> slots_;
  std::deque<size_t> unsent_;  // places in slots_
  size_t unsent_bytes_ = 0;    // the sum of queued_bytes
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_OUTBOX_H_
