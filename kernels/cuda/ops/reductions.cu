#include "kernels/cuda/ops/reductions.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/block/block_sum.h"
#include "kernels/cuda/block/elementwise.h"
#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kParts = kSumParts;
// Unroll factors of the loops: the number of loads that a lane issues before it uses the first
// loaded value. A block has only one warp, so these loads must hide the memory latency.
constexpr int kRowsInFlight = 64;
constexpr int kRunRowsInFlight = 8;
constexpr unsigned kRangeThreads = 256;

// Returns the index after the last value of the group that begins at index FIRST.
__device__ size_t EndOfGroup(size_t first, size_t group, size_t count) {
  return count - first < group ? count : first + group;
}

// Lanes 0 to 15 of a warp add positive values, lanes 16 to 31 add negative values. Each lane
// computes one of the 16 partial sums of its sign.
__device__ unsigned Part() { return threadIdx.x % kParts; }
__device__ bool IsNegativeLane() { return threadIdx.x >= kParts; }

// Returns two totals: the sum of SUM over lanes 0 to 15 and the sum over lanes 16 to 31, each added
// in the order of the lanes. Also adds up NEGATIVE_COUNT over lanes 16 to 31.
__device__ SignSums SumOfParts(double sum, size_t negative_count) {
  SignSums result;
  for (unsigned p = 0; p < kParts; ++p) {
    result.positive += __shfl_sync(~0u, sum, static_cast<int>(p));
    result.negative += __shfl_sync(~0u, sum, static_cast<int>(kParts + p));
    result.negative_count += __shfl_sync(~0u, negative_count, static_cast<int>(kParts + p));
  }
  return result;
}

// Computes the sum of the positive and the sum of the negative values of each run, with one warp
// per run. A run is kSumRun adjacent values of a group. Each group has RUNS runs. If the last group
// is shorter than the others, the sums of its missing runs are 0.
__global__ void SumRunKernel(const float* values, size_t count, size_t group, size_t runs,
                             SignSums* sums) {
  const size_t first_of_group = blockIdx.x / runs * group;
  const size_t end_of_group = EndOfGroup(first_of_group, group, count);
  const size_t first = first_of_group + blockIdx.x % runs * kSumRun;
  const size_t end = first < end_of_group ? EndOfGroup(first, kSumRun, end_of_group) : first;
  double sum = 0;
  unsigned lane_count = 0;
  for (size_t row = first; row < end; row += kRowsInFlight * kParts) {
    float value[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const size_t i = row + static_cast<size_t>(r) * kParts + Part();
      // Beyond the end of the run, the lane uses a zero of the sign that it does not add.
      value[r] = i < end ? values[i] : (IsNegativeLane() ? 0.0f : -0.0f);
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const bool mine = (std::bit_cast<uint32_t>(value[r]) >> 31 != 0) == IsNegativeLane();
      sum += mine ? static_cast<double>(value[r]) : 0.0;
      lane_count += mine ? 1 : 0;
    }
  }
  const SignSums result = SumOfParts(sum, lane_count);
  if (threadIdx.x == 0) sums[blockIdx.x] = result;
}

// Adds the sums of all runs (of kSumRun values) of a group, with one warp per group.
__global__ void SumGroupKernel(const SignSums* run_sums, size_t runs, SignSums* sums) {
  const SignSums* const of_group = run_sums + blockIdx.x * runs;
  double sum = 0;
  size_t negative_count = 0;
#pragma unroll kRunRowsInFlight
  for (size_t r = Part(); r < runs; r += kParts) {
    sum += IsNegativeLane() ? of_group[r].negative : of_group[r].positive;
    negative_count += of_group[r].negative_count;
  }
  const SignSums result = SumOfParts(sum, negative_count);
  if (threadIdx.x == 0) sums[blockIdx.x] = result;
}

// Extends RANGE to include LEAST and MOST. Ignores NaNs, because both comparisons are false for a
// NaN.
__device__ void Widen(Range& range, float least, float most) {
  range.least = least < range.least ? least : range.least;
  range.most = most > range.most ? most : range.most;
}

__global__ void RangeKernel(const float* values, size_t count, size_t group, Range* ranges) {
  __shared__ float least_warp_largest[kRangeThreads / 32];
  __shared__ float most_warp_largest[kRangeThreads / 32];
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
    least_warp_largest[threadIdx.x / 32] = range.least;
    most_warp_largest[threadIdx.x / 32] = range.most;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned w = 0; w < kRangeThreads / 32; ++w) {
    Widen(range, least_warp_largest[w], most_warp_largest[w]);
  }
  ranges[blockIdx.x] = range;
}

// Finds the largest magnitude. Compares the bits of magnitudes as integers, which have the order of
// the floats, with NaNs above infinity.
struct LargestOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return b == nullptr ? LoadPack<float, N>(a + i) : LoadSum<N>(a + i, b + i);
  }
  template <int N>
  __device__ void Store(size_t, const Pack<float, N>& value) {
    for (int j = 0; j < N; ++j) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(value.at[j]) & 0x7FFFFFFF;
      if (magnitude > largest) largest = magnitude;
    }
  }
  bool aligned() const {
    return IsAligned(a, kPackSize * sizeof(float)) && IsAligned(b, kPackSize * sizeof(float));
  }

  const float* a;
  const float* b;  // if null, the result is max |a| instead of max |a + b|
  uint32_t largest = 0;
};

// REQUIRES: *largest is 0 before the launch.
__global__ void LargestKernel(LargestOp op, size_t count, bool aligned, uint32_t* largest) {
  __shared__ uint32_t block_largest;
  if (threadIdx.x == 0) block_largest = 0;
  __syncthreads();
  ApplyToTile(op, count, aligned);
  const uint32_t warp_largest = __reduce_max_sync(~0u, op.largest);
  if (threadIdx.x % 32 == 0) atomicMax(&block_largest, warp_largest);
  __syncthreads();
  if (threadIdx.x == 0 && block_largest > 0) atomicMax(largest, block_largest);
}

Status Largest(const LargestOp& op, size_t count, float* largest, const Stream& stream) {
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(std::span(largest, 1)), stream));
  return Launch("find the largest magnitude", LargestKernel, OneBlockPerTile(count), stream, op,
                count, op.aligned(), reinterpret_cast<uint32_t*>(largest));
}

struct SquareOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t, const Pack<float, N>& value) {
    for (int j = 0; j < N; ++j) sum += static_cast<double>(value.at[j]) * value.at[j];
  }
  bool aligned() const { return IsAligned(values, kPackSize * sizeof(float)); }

  const float* values;
  double sum = 0;
};

__global__ void SquareKernel(SquareOp op, size_t count, bool aligned, double* partial) {
  ApplyToTile(op, count, aligned);
  const double sum = BlockSum<kTileThreads>(op.sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void SumPartialKernel(const double* partial, size_t count, double* sum) {
  double mine = 0;
  for (size_t i = threadIdx.x; i < count; i += kTileThreads) mine += partial[i];
  const double total = BlockSum<kTileThreads>(mine);
  if (threadIdx.x == 0) *sum = total;
}

}  // namespace

Status SumBySign(std::span<const float> values, size_t group, std::span<SignSums> runs,
                 std::span<SignSums> sums, const Stream& stream) {
  const size_t run_count = SumRuns(group);
  const std::span<SignSums> run_sums = run_count > 1 ? runs : sums;
  RETURN_IF_CUDA_ERROR(Launch("sum the runs by sign", SumRunKernel,
                              {sums.size() * run_count, 2 * kParts}, stream, values.data(),
                              values.size(), group, run_count, run_sums.data()));
  if (run_count <= 1) return {};
  return Launch("sum the groups by sign", SumGroupKernel, {sums.size(), 2 * kParts}, stream,
                run_sums.data(), run_count, sums.data());
}

Status RangeWithZero(std::span<const float> values, size_t group, std::span<Range> ranges,
                     const Stream& stream) {
  return Launch("find the ranges", RangeKernel, {ranges.size(), kRangeThreads}, stream,
                values.data(), values.size(), group, ranges.data());
}

Status LargestMagnitude(std::span<const float> values, float* largest, const Stream& stream) {
  return Largest({values.data(), nullptr}, values.size(), largest, stream);
}

Status LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b, float* largest,
                             const Stream& stream) {
  return Largest({a.data(), b.data()}, a.size(), largest, stream);
}

size_t PartialSumsOfSquares(size_t count) { return OneBlockPerTile(count).block_count; }

Status SumOfSquares(std::span<const float> values, std::span<double> partial, double* sum,
                    const Stream& stream) {
  const SquareOp op{values.data()};
  const Grid grid = OneBlockPerTile(values.size());
  RETURN_IF_CUDA_ERROR(Launch("sum the squares of tiles", SquareKernel, grid, stream, op,
                              values.size(), op.aligned(), partial.data()));
  return Launch("sum the squares", SumPartialKernel, {1, kTileThreads}, stream, partial.data(),
                grid.block_count, sum);
}

}  // namespace thinwire::kernels::cuda
