#include "kernels/sparse.h"

#include <algorithm>
#include <cstddef>

namespace thinwire::kernels {
namespace {

// The prefetch distance, as a number of indices. It is large enough to hide the memory latency.
constexpr size_t kAhead = 128;

// Calls visit(j) for each position j in INDICES. Prefetches the elements of LONG_ARRAY that later
// calls use into the second-level cache, because the first-level cache allows few outstanding
// requests.
template <typename Visit>
inline void ForEachIndex(std::span<const uint32_t> indices, const float* long_array,
                         const Visit& visit) {
  const size_t first = std::min(kAhead, indices.size());
  for (size_t j = 0; j < first; ++j) __builtin_prefetch(long_array + indices[j], 0, 2);
  size_t j = 0;
  for (; j + kAhead < indices.size(); ++j) {
    __builtin_prefetch(long_array + indices[j + kAhead], 0, 2);
    visit(j);
  }
  for (; j < indices.size(); ++j) visit(j);
}

}  // namespace

void Gather(std::span<const float> values, std::span<const uint32_t> indices,
            std::span<float> out) {
  ForEachIndex(indices, values.data(), [&](size_t j) { out[j] = values[indices[j]]; });
}

void Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
             std::span<float> out) {
  ForEachIndex(indices, out.data(), [&](size_t j) { out[indices[j]] = scale * values[j]; });
}

void ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                std::span<float> sum) {
  ForEachIndex(indices, sum.data(), [&](size_t j) { sum[indices[j]] += scale * values[j]; });
}

}  // namespace thinwire::kernels
