// StreamOutbox stores the entries that a stream must still send. For an answered read it stores the
// shard number instead of parameters: Next() chooses the parameters when it creates the message.
// Its memory therefore stays small even if the peer reads slowly.
//
//   verdicts   any number, sent in order and before all answers
//   answers    at most one per shard; sent by descending shard number
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

// The maximum number of payload bytes in one message. A larger answer is sent in a message of its
// own.
inline constexpr size_t kMessagePayloadBytes = size_t{1} << 20;

class StreamOutbox {
 public:
  void AddVerdict(const VerdictEntry& verdict) { verdicts_.push_back(verdict); }
  void AddWaiting(const WaitingEntry& wait);
  // Adds the answer to the read for STEP, which replaces an answer for an earlier step. For a read
  // of published parameters, DELTAS is the current answer; it is sent if the log no longer contains
  // the reader's version when the message is created. SLOTS must outlive the outbox.
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
