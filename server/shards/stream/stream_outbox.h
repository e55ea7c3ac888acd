// StreamOutbox queues the verdicts, answers and waiting notices (which tell a worker why its read
// waits) that a stream must still send. For an answered read it stores the shard number instead of
// parameters: Next() takes the parameters from the shard's slots when it creates the message. The
// queue therefore stays small even if the peer reads slowly.
//
//   verdicts   any number, sent in order and before all answers
//   answers    at most one per shard; sent by descending shard number
//   waiting    at most one per shard, and none for a shard that has an answer
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_STREAM_OUTBOX_H_
#define THINWIRE_SERVER_SHARDS_STREAM_STREAM_OUTBOX_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "proto/frame.h"
#include "server/core/read_form.h"
#include "server/shards/stream/published_slots.h"

namespace thinwire {

// The maximum number of payload bytes in one message. A larger answer is sent in a message of its
// own.
inline constexpr size_t kMessagePayloadBytes = size_t{1} << 20;

// The steps that an answer lets the worker compute (ReadAnswer::last, holds_pushes).
struct StepsAhead {
  uint32_t count = 0;
  bool holds_pushes = false;
};

class StreamOutbox {
 public:
  void AddVerdict(const VerdictEntry& verdict) { verdicts_.push_back(verdict); }
  void AddWaiting(const WaitingEntry& wait);
  // Adds the answer to the read for STEP. This answer replaces a queued answer of SHARD for an
  // earlier step. Next() takes the newest parameters from SLOTS.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form,
                 std::shared_ptr<const PublishedSlots> slots, StepsAhead ahead = {});

  bool empty() const { return entry_count() == 0; }
  size_t entry_count() const { return verdicts_.size() + answers_.size() + waiting_.size(); }

  // Returns the next message and removes its contents from the queue. REQUIRES: the outbox is not
  // empty.
  ServerFrame Next();

 private:
  struct Answer {
    Step step;
    ReadForm form;
    std::shared_ptr<const PublishedSlots> slots;
    StepsAhead ahead;
  };

  void MoveAnswersTo(ServerFrame& frame);
  // Returns the newest parameters of SHARD in the form that ANSWER requires.
  std::vector<ParametersEntry> EntriesOf(ShardId shard, const Answer& answer);

  std::deque<VerdictEntry> verdicts_;
  std::map<ShardId, Answer, std::greater<>> answers_;
  std::map<ShardId, WaitingEntry> waiting_;
  std::map<ShardId, Version> published_;  // the last version that an answer has brought
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_STREAM_OUTBOX_H_
