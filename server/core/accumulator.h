// Accumulator: the gradients that were accepted and are not yet an update.
//
//   sum = sum of examples_i * decode(payload_i)
//   weight = sum of (examples_i + late_examples_i)
//
// The first gradient overwrites the sum in one pass, so nothing is ever zeroed. Until a second one
// comes it stays as it was sent, since it may be the only one: then the update takes its values
// from the payload, and the sum is neither written nor read. FoldLone ends that wait: a payload is
// let go when its event is over, for the sender's next message is not read before that. The sum's
// bits are the same either way.
//
// With KEEP_SPARSE, a sum of sparse payloads alone is kept as such: it has entries where any of
// them has one, and the rest of the array means nothing. A dense payload among them makes it a sum
// as ever. The entries' bits are those that the whole sum would have.
//
// Where the order of the fold is to be the workers', Keep holds a payload until the workers before
// it have had their turn (FoldTurns).
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_ACCUMULATOR_H_
#define THINWIRE_SERVER_CORE_ACCUMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/codec/payload.h"
#include "common/float_array.h"
#include "common/ids.h"
#include "server/core/index_set.h"

namespace thinwire {

// REQUIRES: examples > 0; PayloadIsWithin(payload, LargestAccepted(...)) (judge.h).
struct Gradient {
  WorkerId worker;
  uint32_t examples = 0;
  uint32_t late_examples = 0;
  CheckedPayload payload;
};

class Accumulator {
 public:
  // The sum lies in MEMORY, which outlives the accumulator.
  explicit Accumulator(size_t value_count, bool keep_sparse = false,
                       std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : keep_sparse_(keep_sparse),
        sum_(value_count, memory),
        entries_(keep_sparse ? value_count : 0) {}

  // Counts GRADIENT and folds it.
  void Fold(Gradient gradient);
  // Counts GRADIENT and holds it. REQUIRES: none of its worker's is held.
  void Keep(Gradient gradient);
  // Folds what is held, in the workers' order, up to the first worker that AWAITED says may still
  // give.
  void FoldTurns(absl::FunctionRef<bool(WorkerId)> awaited);
  // Lets go of the payload of a gradient that is folded alone, if there is one.
  void FoldLone();

  // Of the gradients counted since the last Clear, folded or held.
  uint32_t count() const { return static_cast<uint32_t>(givers_.size()); }
  uint64_t examples() const { return examples_; }
  uint64_t weight() const { return weight_; }
  // Who gave them, rising; a worker that gave twice stands twice.
  std::vector<WorkerId> Givers() const;

  // What follows REQUIRES: count() > 0 and nothing is held.

  // Whether the sum has entries for some values only.
  bool sparse() const;
  // Calls block(first, values) for runs of the sum, from number FIRST, in order. REQUIRES:
  // !sparse().
  void ForEachBlock(BlockFunction block) const;
  // Calls block(indices, sums) for the entries, indices rising, a few hundred at a time. REQUIRES:
  // sparse().
  void ForEachEntry(EntryFunction block) const;
  void Clear();

 private:
  // What sum_ is.
  enum class Form {
    kNothing,  // meaningless
    kSparse,   // a sum where entries_ has an index
    kWhole,    // a sum
  };

  void Count(const Gradient& gradient);
  void Add(Gradient gradient);
  void AddToSum(const Gradient& gradient);
  void AddEntries(const Gradient& gradient);
  void MakeWhole();
  bool IsKeptSparse(const Gradient& gradient) const;

  const bool keep_sparse_;
  FloatArray sum_;
  IndexSet entries_;
  Form form_ = Form::kNothing;
  std::optional<Gradient> lone_;  // none unless form_ is kNothing
  uint64_t examples_ = 0;
  uint64_t weight_ = 0;
  std::vector<WorkerId> givers_;
  std::map<WorkerId, Gradient> held_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_ACCUMULATOR_H_
