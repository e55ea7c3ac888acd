#include "server/core/optimizer/sparse_update.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "common/base/repeatable_math.h"
#include "kernels/sparse.h"
#include "server/core/optimizer/power_table.h"

namespace thinwire {
namespace {

// Number of values that are updated together as one block. The masters and slots of a block fit in
// the L1 cache.
constexpr size_t kBlockValues = 512;

// Copies the values at a block's indices from one array into a contiguous block, and back into the
// array.
class Gathered {
 public:
  explicit Gathered(std::span<float> whole) : whole_(whole), block_(kBlockValues) {}

  std::span<float> Take(std::span<const uint32_t> indices) {
    const auto block = std::span(block_).first(indices.size());
    kernels::Gather(whole_, indices, block);
    return block;
  }
  void Store(std::span<const uint32_t> indices) const {
    kernels::Scatter(indices, std::span(block_).first(indices.size()), 1.0f, whole_);
  }

 private:
  const std::span<float> whole_;
  std::vector<float> block_;
};

// Applies the weight decay of missed updates: multiplies each VALUES[j] by DECAY^MISSED[j]. The
// products stay finite.
void ApplyMissedDecay(const PowerTable& decay, std::span<const uint32_t> missed,
                      std::span<float> values) {
  for (size_t j = 0; j < values.size(); ++j) {
    values[j] = FiniteFloat(values[j] * FiniteFloat(decay.Of(missed[j])));
  }
}

// Sets MISSED[j] to the number of updates since the last entry at index INDICES[j], without the
// current update. Records the current update, NUMBER, as the last update with an entry:
// LAST[INDICES[j]] = NUMBER.
void CountMissed(uint32_t number, std::span<const uint32_t> indices, std::span<uint32_t> last,
                 std::span<uint32_t> missed) {
  for (size_t j = 0; j < indices.size(); ++j) {
    missed[j] = number - 1 - last[indices[j]];
    last[indices[j]] = number;
  }
}

}  // namespace

bool ApplySparse(const Optimizer& optimizer, const Update& update,
                 std::span<const uint32_t> indices, std::span<const float> sums,
                 const LazyArrays& arrays) {
  const PowerTable decay(1 - update.learning_rate * optimizer.weight_decay());
  Gathered masters(arrays.masters);
  std::vector<Gathered> slots(arrays.slots.begin(), arrays.slots.end());
  std::array<uint32_t, kBlockValues> missed_block;
  std::vector<std::span<float>> slot_blocks(slots.size());
  bool saturated = false;
  for (size_t first = 0; first < indices.size(); first += kBlockValues) {
    const auto block = indices.subspan(first, std::min(kBlockValues, indices.size() - first));
    const auto missed = std::span(missed_block).first(block.size());
    CountMissed(static_cast<uint32_t>(update.number), block, arrays.last, missed);
    const std::span<float> masters_block = masters.Take(block);
    if (optimizer.weight_decay() != 0) ApplyMissedDecay(decay, missed, masters_block);
    std::ranges::transform(slots, slot_blocks.begin(),
                           [&](Gathered& slot) { return slot.Take(block); });
    saturated |=
        optimizer.Apply(update, sums.subspan(first, block.size()), masters_block, slot_blocks);
    masters.Store(block);
    for (const Gathered& slot : slots) slot.Store(block);
  }
  return saturated;
}

}  // namespace thinwire
