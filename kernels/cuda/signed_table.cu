#include "kernels/cuda/signed_table.h"

#include "kernels/cuda/few.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void SignedTableKernel(const float* magnitudes, size_t half, std::byte* numbers,
                                  float* table, float* thresholds) {
  const size_t i = threadIdx.x;
  if (i >= half) return;
  const float mine = magnitudes[i];
  table[i] = mine;
  table[half + i] = -mine;
  if (i + 1 < half) thresholds[i] = 0.5f * mine + 0.5f * magnitudes[i + 1];
  if (numbers != nullptr) PutFloat(mine, numbers, i);
}

}  // namespace

Status SignedTable(std::span<const float> magnitudes, std::byte* numbers, std::span<float> table,
                   std::span<float> thresholds, const Stream& stream) {
  return Launch("make a table", SignedTableKernel, {1, 128}, stream, magnitudes.data(),
                magnitudes.size(), numbers, table.data(), thresholds.data());
}

}  // namespace thinwire::kernels::cuda
