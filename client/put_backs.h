// PutBacks: the pushes that wait to hear what a selection took of them, where gTop-k gives the rest
// back to the workers (docs/optimizers.md).
//
//   answer with frontier t + 1     its list is of round t
//   accepted push of step t        what that list lacks of it goes back, once
//   no such answer, but a later    what was not taken is lost, and counted
//
// An answer follows its push's verdict, but overtakes one that was lost with its stream.
//
// Whether a shard's answers have such a list is known from its first one, which comes before any
// push of it.
#ifndef THINWIRE_CLIENT_PUT_BACKS_H_
#define THINWIRE_CLIENT_PUT_BACKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe.
class PutBacks {
 public:
  // What is now to be done.
  struct Outcome {
    std::optional<PushEntry> push;    // to be put back where TAKEN lacks it
    std::span<const uint32_t> taken;  // rising; valid until the next call
    bool lost = false;                // a push was kept in vain
  };

  explicit PutBacks(uint32_t shard_count) : slots_(shard_count) {}

  // Whether pushes of SHARD are kept.
  bool Keeps(ShardId shard) const { return slots_[shard.value].keeps; }
  // Whether a push waits for its answer.
  bool pending() const { return pending_count_ > 0; }

  // Once per push.
  Outcome Accepted(const PushEntry& push);
  // ENTRY is the last of an answer, and its shard has VALUE_COUNT values. Errors: InvalidArgument
  // "shard 3: taken: ...", and nothing has changed.
  absl::StatusOr<Outcome> Answered(const ParametersEntry& entry, size_t value_count);

 private:
  struct Slot {
    bool keeps = false;
    std::optional<PushEntry> push;
    Step frontier;  // of the last answer, as the next
    std::vector<uint32_t> taken;
  };

  static Outcome Match(const Slot& slot, PushEntry push);

  std::vector<Slot> slots_;
  size_t pending_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PUT_BACKS_H_
