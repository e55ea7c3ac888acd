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

// VALUES[j] times factor^MISSED[j].
class Decay {
 public:
  explicit Decay(double factor) : none_(factor == 1), powers_(factor) {}

  void MakeUp(std::span<const uint32_t> missed, std::span<float> values) const {
    if (none_) return;
    for (size_t j = 0; j < values.size(); ++j) {
      values[j] *= static_cast<float>(powers_.Of(missed[j]));
    }
  }

 private:
  const bool none_;
  const PowerTable powers_;
};

// An array of the shard, brought together for a block's indices and put back.
class Gathered {
 public:
  explicit Gathered(std::span<float> whole, double factor)
      : whole_(whole), decay_(factor), block_(kBlockValues) {}

  std::span<float> Take(std::span<const uint32_t> indices, std::span<const uint32_t> missed) {
    const auto block = std::span(block_).first(indices.size());
    kernels::Gather(whole_, indices, block);
    decay_.MakeUp(missed, block);
    return block;
  }
  void PutBack(std::span<const uint32_t> indices) const {
    kernels::Scatter(indices, std::span(block_).first(indices.size()), 1.0f, whole_);
  }

 private:
  const std::span<float> whole_;
  const Decay decay_;
  std::vector<float> block_;
};

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
  const Decays& decays = optimizer.decays();
  Gathered masters(arrays.masters, 1 - update.learning_rate * decays.weight_decay);
  std::vector<Gathered> slots;
  slots.reserve(arrays.slots.size());
  for (size_t s = 0; s < arrays.slots.size(); ++s) {
    slots.emplace_back(arrays.slots[s], decays.slots[s]);
  }
  std::array<uint32_t, kBlockValues> missed_room;
  std::vector<std::span<float>> slot_blocks(slots.size());
  for (size_t first = 0; first < indices.size(); first += kBlockValues) {
    const auto block = indices.subspan(first, std::min(kBlockValues, indices.size() - first));
    const auto missed = std::span(missed_room).first(block.size());
    Miss(static_cast<uint32_t>(update.number), block, arrays.last, missed);
    const std::span<float> masters_block = masters.Take(block, missed);
    std::ranges::transform(slots, slot_blocks.begin(),
                           [&](Gathered& slot) { return slot.Take(block, missed); });
    optimizer.Apply(update, sums.subspan(first, block.size()), masters_block, slot_blocks);
    masters.PutBack(block);
    for (const Gathered& slot : slots) slot.PutBack(block);
  }
}

}  // namespace thinwire
