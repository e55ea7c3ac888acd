#include "kernels/cuda/sums.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/in_order.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kParts = kSumParts;
// Rows of a value for each part that are on their way at once: a warp alone waits for memory longer
// than it adds.
constexpr int kRows = 64;
constexpr int kRunRows = 8;
constexpr unsigned kRangeThreads = 256;

// The end of a block's group, which begins at FIRST.
__device__ size_t EndOfGroup(size_t first, size_t group, size_t count) {
  return count - first < group ? count : first + group;
}

// A warp's lanes: 0 to 15 are the parts of what is positive, 16 to 31 of the rest.
__device__ unsigned Part() { return threadIdx.x % kParts; }
__device__ bool IsNegativeLane() { return threadIdx.x >= kParts; }

// The sum of the parts, and of the count that the lanes of a sign have.
__device__ SignSums SumOfParts(double sum, size_t negative_count) {
  SignSums result;
  for (unsigned p = 0; p < kParts; ++p) {
    result.positive += __shfl_sync(~0u, sum, static_cast<int>(p));
    result.negative += __shfl_sync(~0u, sum, static_cast<int>(kParts + p));
    result.negative_count += __shfl_sync(~0u, negative_count, static_cast<int>(kParts + p));
  }
  return result;
}

// A warp for each run of each group, which has RUNS of them; the last may have fewer, and sums of
// nothing.
__global__ void SumRunKernel(const float* values, size_t count, size_t group, size_t runs,
                             SignSums* sums) {
  const size_t first_of_group = blockIdx.x / runs * group;
  const size_t end_of_group = EndOfGroup(first_of_group, group, count);
  const size_t first = first_of_group + blockIdx.x % runs * kSumRun;
  const size_t end = first < end_of_group ? EndOfGroup(first, kSumRun, end_of_group) : first;
  double sum = 0;
  unsigned mine_count = 0;
  for (size_t row = first; row < end; row += kRows * kParts) {
    float value[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const size_t i = row + static_cast<size_t>(r) * kParts + Part();
      // A zero of the other sign is nobody's.
      value[r] = i < end ? values[i] : (IsNegativeLane() ? 0.0f : -0.0f);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool mine = (std::bit_cast<uint32_t>(value[r]) >> 31 != 0) == IsNegativeLane();
      sum += mine ? static_cast<double>(value[r]) : 0.0;
      mine_count += mine ? 1 : 0;
    }
  }
  const SignSums result = SumOfParts(sum, mine_count);
  if (threadIdx.x == 0) sums[blockIdx.x] = result;
}

// A warp for each group.
__global__ void SumGroupKernel(const SignSums* run_sums, size_t runs, SignSums* sums) {
  const SignSums* const of_group = run_sums + blockIdx.x * runs;
  double sum = 0;
  size_t negative_count = 0;
#pragma unroll kRunRows
  for (size_t r = Part(); r < runs; r += kParts) {
    sum += IsNegativeLane() ? of_group[r].negative : of_group[r].positive;
    negative_count += of_group[r].negative_count;
  }
  const SignSums result = SumOfParts(sum, negative_count);
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

Status SumBySign(std::span<const float> values, size_t group, std::span<SignSums> runs,
                 std::span<SignSums> sums, const Stream& stream) {
  const size_t run_count = SumRuns(group);
  const std::span<SignSums> run_sums = run_count > 1 ? runs : sums;
  return InOrder(
      [&] {
        return Launch("sum by sign", SumRunKernel, {sums.size() * run_count, 2 * kParts}, stream,
                      values.data(), values.size(), group, run_count, run_sums.data());
      },
      [&] {
        if (run_count <= 1) return Status();
        return Launch("sum the runs", SumGroupKernel, {sums.size(), 2 * kParts}, stream,
                      run_sums.data(), run_count, sums.data());
      });
}

Status RangeWithZero(std::span<const float> values, size_t group, std::span<Range> ranges,
                     const Stream& stream) {
  return Launch("find the range", RangeKernel, {ranges.size(), kRangeThreads}, stream,
                values.data(), values.size(), group, ranges.data());
}

}  // namespace thinwire::kernels::cuda
