// StreamOutbox: what a stream still has to say. It holds shard numbers, not parameters: the bytes
// of an answer are chosen when its message is made. So it stays small however slowly the peer
// reads.
//
//   verdicts   all of them, in their order, before any parameters
//   answers    at most one per shard; the highest shard number first, which is needed first
//   waits      at most one per shard, none for a shard that has an answer
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_EDGE_STREAM_OUTBOX_H_
#define THINWIRE_SERVER_EDGE_STREAM_OUTBOX_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "common/ids.h"
#include "proto/frame.h"
#include "server/core/read_form.h"
#include "server/edge/published_slots.h"

namespace thinwire {

// About as many bytes of payload go into one message; a larger payload goes alone.
inline constexpr size_t kMessagePayloadBytes = size_t{1} << 20;

class StreamOutbox {
 public:
  void AddVerdict(const VerdictEntry& verdict) { verdicts_.push_back(verdict); }
  void AddWait(const WaitingEntry& wait);
  // The answer to the read for STEP; an answer to an older step is replaced. DELTAS are the answer
  // of now to a form that is published: they are sent if, when the message is made, no log leads
  // from what the reader holds any more. SLOTS outlives the outbox.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form, const PublishedSlots& slots,
                 PublishedDeltas deltas = {});

  bool empty() const { return entry_count() == 0; }
  size_t entry_count() const { return verdicts_.size() + answers_.size() + waits_.size(); }

  // The next message's entries, taken out. REQUIRES: not empty().
  ServerFrame Next();

 private:
  struct Answer {
    Step step;
    ReadForm form;
    const PublishedSlots* slots = nullptr;
    PublishedDeltas deltas;
  };

  void TakeAnswers(ServerFrame& frame);
  // The newest parameters that ANSWER can be given.
  static std::vector<ParametersEntry> EntriesOf(ShardId shard, const Answer& answer);

  std::deque<VerdictEntry> verdicts_;
  std::map<ShardId, Answer, std::greater<>> answers_;
  std::map<ShardId, WaitingEntry> waits_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_STREAM_OUTBOX_H_
