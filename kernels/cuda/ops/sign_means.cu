#include "kernels/cuda/ops/sign_means.h"

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/vector_access.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ float MeanOf(double sum, size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

// Computes the two entries of each group's codebook, with one thread per group of values.
__global__ void MeansKernel(const SignSums* sums, size_t group_count, Groups groups, bool by_sign,
                            std::byte* numbers, float* entries) {
  const size_t g = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (g >= group_count) return;
  const size_t left = groups.count - g * groups.group;
  const size_t count = left < groups.group ? left : groups.group;
  const SignSums sum = sums[g];
  if (by_sign) {
    entries[2 * g] = MeanOf(sum.positive, count - sum.negative_count);
    entries[2 * g + 1] = MeanOf(sum.negative, sum.negative_count);
    StoreFloatUnaligned(entries[2 * g], numbers, 2 * g);
    StoreFloatUnaligned(entries[2 * g + 1], numbers, 2 * g + 1);
  } else {
    const float mean = MeanOf(sum.positive - sum.negative, count);
    entries[2 * g] = mean;
    entries[2 * g + 1] = -mean;
    StoreFloatUnaligned(mean, numbers, g);
  }
}

Status Means(std::span<const SignSums> sums, const Groups& groups, bool by_sign, std::byte* numbers,
             std::span<float> entries, const Stream& stream) {
  return Launch("compute sign means", MeansKernel, OneThreadPerItem(sums.size()), stream,
                sums.data(), sums.size(), groups, by_sign, numbers, entries.data());
}

}  // namespace

Status MeansBySign(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                   std::span<float> entries, const Stream& stream) {
  return Means(sums, groups, true, numbers, entries, stream);
}

Status MeanMagnitudes(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                      std::span<float> entries, const Stream& stream) {
  return Means(sums, groups, false, numbers, entries, stream);
}

}  // namespace thinwire::kernels::cuda
