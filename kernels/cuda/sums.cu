#include "kernels/cuda/sums.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kParts = 16;
// Rows of a value for each part that are on their way at once: a warp alone waits for memory longer
// than it adds.
constexpr int kRows = 64;
constexpr unsigned kRangeThreads = 256;

// The end of a block's group, which begins at FIRST.
__device__ size_t EndOfGroup(size_t first, size_t group, size_t count) {
  return count - first < group ? count : first + group;
}

// A warp for each group: lanes 0 to 15 are the parts of what is positive, 16 to 31 of the rest.
__global__ void SumKernel(const float* values, size_t count, size_t group, SignSums* sums) {
  const size_t first = blockIdx.x * group;
  const size_t end = EndOfGroup(first, group, count);
  const unsigned part = threadIdx.x % kParts;
  const bool negative_lane = threadIdx.x >= kParts;
  double sum = 0;
  unsigned mine_count = 0;
  for (size_t row = first; row < end; row += kRows * kParts) {
    float value[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const size_t i = row + static_cast<size_t>(r) * kParts + part;
      // A zero of the other sign is nobody's.
      value[r] = i < end ? values[i] : (negative_lane ? 0.0f : -0.0f);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool mine = (std::bit_cast<uint32_t>(value[r]) >> 31 != 0) == negative_lane;
      sum += mine ? static_cast<double>(value[r]) : 0.0;
      mine_count += mine ? 1 : 0;
    }
  }
  SignSums result;
  for (unsigned p = 0; p < kParts; ++p) {
    result.positive += __shfl_sync(~0u, sum, static_cast<int>(p));
    result.negative += __shfl_sync(~0u, sum, static_cast<int>(kParts + p));
  }
  result.negative_count = __reduce_add_sync(~0u, negative_lane ? mine_count : 0);
  if (threadIdx.x == 0) sums[blockIdx.x] = result;
}

// A NaN is neither less nor more.
__device__ void Widen(Range& range, float least, float most) {
  range.least = least < range.least ? least : range.least;
  range.most = most > range.most ? most : range.most;
}

__global__ void RangeKernel(const float* values, size_t count, size_t group, Range* ranges) {
  __shared__ float least_of_warp[kRangeThreads / 32];
  __shared__ float most_of_warp[kRangeThreads / 32];
  const size_t first = blockIdx.x * group;
  const size_t end = EndOfGroup(first, group, count);
  Range range;
  for (size_t i = first + threadIdx.x; i < end; i += kRangeThreads) {
    Widen(range, values[i], values[i]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const float least = __shfl_xor_sync(~0u, range.least, distance);
    const float most = __shfl_xor_sync(~0u, range.most, distance);
    Widen(range, least, most);
  }
  if (threadIdx.x % 32 == 0) {
    least_of_warp[threadIdx.x / 32] = range.least;
    most_of_warp[threadIdx.x / 32] = range.most;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned w = 0; w < kRangeThreads / 32; ++w) {
    Widen(range, least_of_warp[w], most_of_warp[w]);
  }
  ranges[blockIdx.x] = range;
}

}  // namespace

Status SumBySign(std::span<const float> values, size_t group, std::span<SignSums> sums,
                 const Stream& stream) {
  return Launch("sum by sign", SumKernel, {sums.size(), 2 * kParts}, stream, values.data(),
                values.size(), group, sums.data());
}

Status RangeWithZero(std::span<const float> values, size_t group, std::span<Range> ranges,
                     const Stream& stream) {
  return Launch("find the range", RangeKernel, {ranges.size(), kRangeThreads}, stream,
                values.data(), values.size(), group, ranges.data());
}

}  // namespace thinwire::kernels::cuda
