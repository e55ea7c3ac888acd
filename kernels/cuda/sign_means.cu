#include "kernels/cuda/sign_means.h"

#include "kernels/cuda/few.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ float MeanOf(double sum, size_t of) {
  return of == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(of));
}

// A thread for each group.
__global__ void MeansKernel(const SignSums* sums, size_t group_count, Groups groups, bool by_sign,
                            std::byte* numbers, float* entries) {
  const size_t g = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (g >= group_count) return;
  const size_t rest = groups.count - g * groups.group;
  const size_t count = rest < groups.group ? rest : groups.group;
  const SignSums of = sums[g];
  if (by_sign) {
    entries[2 * g] = MeanOf(of.positive, count - of.negative_count);
    entries[2 * g + 1] = MeanOf(of.negative, of.negative_count);
    PutFloat(entries[2 * g], numbers, 2 * g);
    PutFloat(entries[2 * g + 1], numbers, 2 * g + 1);
  } else {
    const float mean = MeanOf(of.positive - of.negative, count);
    entries[2 * g] = mean;
    entries[2 * g + 1] = -mean;
    PutFloat(mean, numbers, g);
  }
}

Status Means(std::span<const SignSums> sums, const Groups& groups, bool by_sign, std::byte* numbers,
             std::span<float> entries, const Stream& stream) {
  return Launch("find means", MeansKernel, OneThreadEach(sums.size()), stream, sums.data(),
                sums.size(), groups, by_sign, numbers, entries.data());
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
