// Reductions of arrays on the GPU. Results go to GPU memory.
//
//   SumBySign               sums of the positive and the negative values of each group
//   RangeWithZero           smallest and largest number among 0 and each group's values
//   LargestMagnitude        max |values|, 0 for an empty array; a NaN is larger than infinity
//   LargestMagnitudeOfSum   max |a + b|
//   SumOfSquares            sum of values^2, in double
//
// A group has GROUP values; the last group may be shorter. The CPU version, kernels/reductions.h,
// computes the same bits, except for SumOfSquares: its order of additions on a GPU depends only on
// the array's length and on its alignment to 16 bytes, so the result is the same on every GPU and
// differs from the CPU's only by rounding. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_REDUCTIONS_H_
#define THINWIRE_KERNELS_CUDA_OPS_REDUCTIONS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {

// Returns the number of runs in a group of GROUP values. A run is kSumRun adjacent values. A group
// is summed run by run, in the order that kernels/reductions.h defines.
constexpr size_t SumRuns(size_t group) { return (group + kSumRun - 1) / kSumRun; }

// RUNS is workspace with SumRuns(group) elements per group. If SumRuns(group) is 1, RUNS may be
// empty. REQUIRES: group > 0; sums.size() is the number of groups.
Status SumBySign(std::span<const float> values, size_t group, std::span<SignSums> runs,
                 std::span<SignSums> sums, const Stream& stream);

// REQUIRES: group > 0; ranges.size() is the number of groups.
Status RangeWithZero(std::span<const float> values, size_t group, std::span<Range> ranges,
                     const Stream& stream);

Status LargestMagnitude(std::span<const float> values, float* largest, const Stream& stream);

// REQUIRES: a.size() == b.size().
Status LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b, float* largest,
                             const Stream& stream);

// Returns the size of the workspace of SumOfSquares() for COUNT values.
size_t PartialSumsOfSquares(size_t count);

// PARTIAL is workspace. REQUIRES: partial.size() == PartialSumsOfSquares(values.size()).
Status SumOfSquares(std::span<const float> values, std::span<double> partial, double* sum,
                    const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_REDUCTIONS_H_
