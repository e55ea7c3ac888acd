// Accumulator sums the accepted gradients that are not yet part of an update.
//
//   sum    = sum of examples_i * decode(payload_i)
//   weight = sum of (examples_i + late_examples_i)
//
// The first gradient overwrites the sum, which is therefore never zeroed. While it is the only
// gradient, it stays encoded: if the update follows at once, its values come straight from the
// payload, and the sum is neither written nor read. FoldSingle() decodes it at the end of the
// event, because the sender's next message is read only after the payload is released. The bits of
// the sum do not depend on this.
//
// With `keep_sparse`, the sum of sparse payloads alone stays sparse: it has entries where any of
// the payloads has one, and the array is meaningless elsewhere. One dense payload makes the sum
// dense. Either way the entries have the same bits.
//
// With ordered folding, Hold() keeps a payload until the payloads of all lower workers are folded
// (FoldInOrder).
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_UPDATE_ACCUMULATOR_H_
#define THINWIRE_SERVER_CORE_UPDATE_ACCUMULATOR_H_

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
#include "server/core/update/index_set.h"

namespace thinwire {

// REQUIRES: examples > 0, and the payload's values are within LargestAccepted() (judge.h).
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

  // Counts GRADIENT and adds it to the sum.
  void Fold(Gradient gradient);
  // Counts GRADIENT and holds it for FoldInOrder. REQUIRES: no gradient of the same worker is held.
  void Hold(Gradient gradient);
  // Adds held gradients in the order of their workers. Stops before the first worker for which
  // MAY_STILL_PUSH is true and no gradient is held.
  void FoldInOrder(absl::FunctionRef<bool(WorkerId)> may_still_push);
  // If the only gradient is still encoded, decodes it into the sum and releases its payload.
  void FoldSingle();

  // These count the gradients since the last Clear(), added or held.
  uint32_t count() const { return static_cast<uint32_t>(contributors_.size()); }
  uint64_t examples() const { return examples_; }
  uint64_t weight() const { return weight_; }
  // Returns the workers of these gradients in rising order, one element per gradient.
  std::vector<WorkerId> Contributors() const;

  // The methods below REQUIRE count() > 0 and no held gradient.

  // Returns whether the sum has entries for some values only.
  bool sparse() const;
  // Calls block(first, values) for consecutive runs of the sum; FIRST is the index of the run's
  // first value. REQUIRES: !sparse().
  void ForEachBlock(BlockFunction block) const;
  // Calls block(indices, sums) for all entries in rising order, a few hundred at a time. REQUIRES:
  // sparse().
  void ForEachEntry(EntryFunction block) const;
  void Clear();

 private:
  // The state of sum_.
  enum class Form {
    kNothing,  // meaningless
    kSparse,   // a sum at the indices in entries_, meaningless elsewhere
    kDense,    // a sum everywhere
  };

  void Count(const Gradient& gradient);
  void Add(Gradient gradient);
  void AddToSum(const Gradient& gradient);
  void AddEntries(const Gradient& gradient);
  void MakeDense();
  bool StaysSparse(const Gradient& gradient) const;

  const bool keep_sparse_;
  FloatArray sum_;
  IndexSet entries_;
  Form form_ = Form::kNothing;
  std::optional<Gradient> single_;  // the only gradient, still encoded; then form_ is kNothing
  uint64_t examples_ = 0;
  uint64_t weight_ = 0;
  std::vector<WorkerId> contributors_;
  std::map<WorkerId, Gradient> held_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_ACCUMULATOR_H_
