#include "kernels/sparse.h"

#include <cstddef>

namespace thinwire::kernels {

void Gather(std::span<const float> values, std::span<const uint32_t> indices,
            std::span<float> out) {
  for (size_t j = 0; j < indices.size(); ++j) out[j] = values[indices[j]];
}

void Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
             std::span<float> out) {
  for (size_t j = 0; j < indices.size(); ++j) out[indices[j]] = scale * values[j];
}

void ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                std::span<float> sum) {
  for (size_t j = 0; j < indices.size(); ++j) sum[indices[j]] += scale * values[j];
}

}  // namespace thinwire::kernels
