// Accumulator sums the accepted gradients that are not yet part of an update.
//
//   sum    = sum of examples_i * factor_i * decode(payload_i)
//   weight = sum of (examples_i + late_examples_i)
//
// The first gradient overwrites the sum, so the sum never needs zeroing. A gradient stays encoded
// while it is the only one: if the update follows at once, the optimizer reads its values directly
// from the payload, and the sum is neither written nor read. Otherwise FoldSingle() decodes the
// gradient at the end of the event, because the server reads the sender's next message only after
// the payload is released. Both paths give the same bits.
//
// With the option `keep_sparse`, the sum stays sparse while all payloads are sparse: it has an
// entry at each index where some payload has one, and the array is undefined at all other indices.
// One dense payload makes the sum dense. The bits of the sum do not depend on its form.
//
// With ordered folding, Hold() stores a payload until FoldInOrder() has added the payloads of all
// workers with lower numbers.
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
#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/memory/float_array.h"
#include "server/core/update/index_set.h"

namespace thinwire {

// An accepted gradient. REQUIRES: examples > 0; no decoded value has a magnitude above
// LargestAccepted() (judge.h).
struct Gradient {
  WorkerId worker;
  uint32_t examples = 0;
  uint32_t late_examples = 0;
  CheckedPayload payload;
  float factor = 1;  // multiplies the values, but not the weight; above 0 and at most 1
  float rate_factor = 1;
};

class Accumulator {
 public:
  // MEMORY allocates the sum and must outlive the accumulator.
  explicit Accumulator(size_t value_count, bool keep_sparse = false,
                       std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : keep_sparse_(keep_sparse),
        sum_(value_count, memory),
        entries_(keep_sparse ? value_count : 0) {}

  // Adds GRADIENT to the sum, to count(), and to the number of examples and the weight.
  void Fold(Gradient gradient);
  // Adds GRADIENT to count(), and to the number of examples and the weight, and holds it for
  // FoldInOrder(). REQUIRES: no gradient of this worker is held.
  void Hold(Gradient gradient);
  // Adds held gradients to the sum in ascending order of their workers. Stops at the first worker
  // that has no held gradient and for which MAY_STILL_PUSH returns true.
  void FoldInOrder(absl::FunctionRef<bool(WorkerId)> may_still_push);
  // If the accumulator has only one gradient and that gradient is still encoded, decodes the
  // gradient into the sum and releases the payload.
  void FoldSingle();

  // The number, the examples and the weight of all gradients, added or held, since the last
  // Clear().
  uint32_t count() const { return static_cast<uint32_t>(contributors_.size()); }
  uint64_t examples() const { return examples_; }
  uint64_t weight() const { return weight_; }
  // Returns the mean of the gradients' rate_factor, weighted by their examples. REQUIRES: count() >
  // 0.
  double rate_factor() const { return rate_sum_ / static_cast<double>(examples_); }
  // Returns the workers of all gradients since the last Clear(), in ascending order, one element
  // per gradient.
  std::vector<WorkerId> Contributors() const;

  // sparse, ForEachBlock, ForEachEntry and SquaredNormOfMean REQUIRE: count() > 0, and no gradient
  // is held.

  // Returns whether the sum has entries for some values only.
  bool sparse() const;
  // Splits the sum into consecutive blocks and calls block(first, values) for each; FIRST is the
  // index of the block's first value. REQUIRES: !sparse().
  void ForEachBlock(BlockFunction block) const;
  // Calls block(indices, sums) with all entries in ascending order, a few hundred entries per call.
  // REQUIRES: sparse().
  void ForEachEntry(EntryFunction block) const;
  // Returns the sum of the squares of sum / weight. The order of the summation depends on whether
  // the only gradient is still encoded.
  double SquaredNormOfMean() const;
  void Clear();

 private:
  // The form in which sum_ stores the sum.
  enum class Form {
    kNothing,  // sum_ is undefined
    kSparse,   // sum_ contains sums at the indices in entries_ and is undefined elsewhere
    kDense,    // sum_ contains a sum at every index
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
  std::optional<Gradient> single_;  // the only gradient, if still encoded; form_ is then kNothing
  uint64_t examples_ = 0;
  uint64_t weight_ = 0;
  double rate_sum_ = 0;  // of examples * rate_factor
  std::vector<WorkerId> contributors_;
  std::map<WorkerId, Gradient> held_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_ACCUMULATOR_H_
