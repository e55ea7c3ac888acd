#include "server/core/update/global_top_k.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/memory/array_bytes.h"
#include "kernels/finite.h"
#include "kernels/select/top_k.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

// Replaces infinities by the largest finite float.
void Saturate(std::span<float> values) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (float& value : values) value = std::clamp(value, -kLargest, kLargest);
}

}  // namespace

void GlobalTopK::Select(const Accumulator& accumulator, float scale, size_t count) {
  if (accumulator.sparse()) {
    accumulator.ForEachEntry([&](std::span<const uint32_t> indices, std::span<const float> sums) {
      kernels::ScatterAdd(indices, sums, scale, remainder_);
    });
  } else {
    accumulator.ForEachBlock([&](size_t first, std::span<const float> sum) {
      for (size_t i = 0; i < sum.size(); ++i) remainder_[first + i] += scale * sum[i];
    });
  }
  indices_.resize(count);
  values_.resize(count);
  kernels::SelectTopK(remainder_, {indices_, values_}, threshold_);
  // The selection contains the largest magnitudes, and thus an infinity if there is one.
  if (!kernels::AllFinite(values_)) {
    Saturate(values_);
    Saturate(remainder_);
  }
  // If fewer than k values differ from 0, the selection contains zeros, which are removed.
  std::erase_if(indices_, [&](uint32_t index) { return remainder_[index] == 0; });
  std::erase(values_, 0.0f);
  if (keeper_ == UnselectedOwner::kWorkers) {
    std::ranges::fill(remainder_, 0.0f);
  } else {
    for (const uint32_t index : indices_) remainder_[index] = 0;
  }
}

void GlobalTopK::ForEachBlock(BlockFunction block) const {
  std::array<float, kDecodedBlock> block_values;
  size_t next = 0;
  for (size_t first = 0; first < remainder_.size(); first += block_values.size()) {
    const auto values =
        std::span(block_values).first(std::min(block_values.size(), remainder_.size() - first));
    std::ranges::fill(values, 0.0f);
    for (; next < indices_.size() && indices_[next] - first < values.size(); ++next) {
      values[indices_[next] - first] = values_[next];
    }
    block(first, values);
  }
}

ByteChain GlobalTopK::Save() const {
  if (keeper_ == UnselectedOwner::kWorkers) return ByteChain();
  return CopyArray(std::as_bytes(std::span(remainder_)));
}

absl::Status GlobalTopK::Restore(const ByteChain& remainder) {
  indices_.clear();
  values_.clear();
  const std::span<float> values =
      keeper_ == UnselectedOwner::kWorkers ? std::span<float>() : std::span(remainder_);
  return FillArray("remainder", remainder, std::as_writable_bytes(values));
}

}  // namespace thinwire
