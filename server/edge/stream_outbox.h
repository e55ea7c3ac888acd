// StreamOutbox holds the entries that a stream has still to send. It stores the numbers of answered
// shards and not their parameters: the bytes of an answer are chosen when its message is made. Its
// size therefore stays small, however slowly the peer reads.
//
//   verdicts   all of them, in order, before any parameters
//   answers    at most one per shard; the highest shard number first, as the next step needs them
//   waiting    at most one per shard, and none for a shard that has an answer
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

// The payload bytes of one message. A larger payload gets a message of its own.
inline constexpr size_t kMessagePayloadBytes = size_t{1} << 20;

class StreamOutbox {
 public:
  void AddVerdict(const VerdictEntry& verdict) { verdicts_.push_back(verdict); }
  void AddWaiting(const WaitingEntry& wait);
  // Adds the answer to the read for STEP. It replaces an answer to an older step. For a read of
  // published values, DELTAS are the current answer; they are sent if the log no longer reaches
  // back to the reader's version when the message is made. SLOTS outlives the outbox.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form, const PublishedSlots& slots,
                 PublishedDeltas deltas = {});

  bool empty() const { return entry_count() == 0; }
  size_t entry_count() const { return verdicts_.size() + answers_.size() + waiting_.size(); }

  // Removes and returns the entries of the next message. REQUIRES: not empty().
  ServerFrame Next();

 private:
  struct Answer {
    Step step;
    ReadForm form;
    const PublishedSlots* slots = nullptr;
    PublishedDeltas deltas;
  };

  void MoveAnswersTo(ServerFrame& frame);
  // Returns the newest parameters for ANSWER.
  static std::vector<ParametersEntry> EntriesOf(ShardId shard, const Answer& answer);

  std::deque<VerdictEntry> verdicts_;
  std::map<ShardId, Answer, std::greater<>> answers_;
  std::map<ShardId, WaitingEntry> waiting_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_STREAM_OUTBOX_H_
