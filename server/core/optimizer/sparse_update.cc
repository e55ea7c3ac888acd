#include "server/core/optimizer/sparse_update.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/sparse.h"
#include "server/core/optimizer/power_table.h"

namespace thinwire {
namespace {

// So few that all of a block's arrays stay in the first cache.
constexpr size_t kBlockValues = 512;

// An array of the shard, brought together for a block's indices and put back.
class Gathered {
 public:
  explicit Gathered(std::span<float> whole) : whole_(whole), block_(kBlockValues) {}

  std::span<float> Take(std::span<const uint32_t> indices) {
    const auto block = std::span(block_).first(indices.size());
    kernels::Gather(whole_, indices, block);
    return block;
  }
  void PutBack(std::span<const uint32_t> indices) const {
    kernels::Scatter(indices, std::span(block_).first(indices.size()), 1.0f, whole_);
  }

 private:
  const std::span<float> whole_;
  std::vector<float> block_;
};

// VALUES[j] times DECAY^MISSED[j].
void MakeUp(const PowerTable& decay, std::span<const uint32_t> missed, std::span<float> values) {
  for (size_t j = 0; j < values.size(); ++j) {
    values[j] *= static_cast<float>(decay.Of(missed[j]));
  }
}

// Writes how many updates before NUMBER had no entry for each of INDICES, and that NUMBER has one.
void Miss(uint32_t number, std::span<const uint32_t> indices, std::span<uint32_t> last,
          std::span<uint32_t> missed) {
  for (size_t j = 0; j < indices.size(); ++j) {
    missed[j] = number - 1 - last[indices[j]];
    last[indices[j]] = number;
  }
}

}  // namespace

void ApplySparse(const Optimizer& optimizer, const Update& update,
                 std::span<const uint32_t> indices, std::span<const float> sums,
                 const LazyArrays& arrays) {
  const PowerTable decay(1 - update.learning_rate * optimizer.weight_decay());
  Gathered masters(arrays.masters);
  std::vector<Gathered> slots(arrays.slots.begin(), arrays.slots.end());
  std::array<uint32_t, kBlockValues> missed_room;
  std::vector<std::span<float>> slot_blocks(slots.size());
  for (size_t first = 0; first < indices.size(); first += kBlockValues) {
    const auto block = indices.subspan(first, std::min(kBlockValues, indices.size() - first));
    const auto missed = std::span(missed_room).first(block.size());
    Miss(static_cast<uint32_t>(update.number), block, arrays.last, missed);
    const std::span<float> masters_block = masters.Take(block);
    if (optimizer.weight_decay() != 0) MakeUp(decay, missed, masters_block);
    std::ranges::transform(slots, slot_blocks.begin(),
                           [&](Gathered& slot) { return slot.Take(block); });
    optimizer.Apply(update, sums.subspan(first, block.size()), masters_block, slot_blocks);
    masters.PutBack(block);
    for (const Gathered& slot : slots) slot.PutBack(block);
  }
}

}  // namespace thinwire
