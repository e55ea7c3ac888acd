#include "kernels/cuda/ops/sparse.h"

#include <cstddef>

#include "kernels/cuda/block/launch.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void GatherKernel(const float* values, const uint32_t* indices, size_t count,
                             float* out) {
  const size_t j = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) out[j] = values[indices[j]];
}

__global__ void ScatterKernel(const uint32_t* indices, const float* values, size_t count,
                              float scale, float* out) {
  const size_t j = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) out[indices[j]] = scale * values[j];
}

__global__ void ScatterAddKernel(const uint32_t* indices, const float* values, size_t count,
                                 float scale, float* sum) {
  const size_t j = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) sum[indices[j]] += scale * values[j];
}

}  // namespace

Status Gather(std::span<const float> values, std::span<const uint32_t> indices,
              std::span<float> out, const Stream& stream) {
  return Launch("gather", GatherKernel, OneThreadPerItem(indices.size()), stream, values.data(),
                indices.data(), indices.size(), out.data());
}

Status Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
               std::span<float> out, const Stream& stream) {
  return Launch("scatter", ScatterKernel, OneThreadPerItem(indices.size()), stream, indices.data(),
                values.data(), indices.size(), scale, out.data());
}

Status ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                  std::span<float> sum, const Stream& stream) {
  return Launch("scatter and add", ScatterAddKernel, OneThreadPerItem(indices.size()), stream,
                indices.data(), values.data(), indices.size(), scale, sum.data());
}

}  // namespace thinwire::kernels::cuda
