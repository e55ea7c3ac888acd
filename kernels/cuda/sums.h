// kernels/sums.h on the GPU: the sums of the values of either sign, and their range, of each group
// of GROUP values (the last may be shorter).
//
// A sum is the CPU's to the bit: partial ones that each add up in order. A run of values goes
// through one warp, and so do the runs of a group. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SUMS_H_
#define THINWIRE_KERNELS_CUDA_SUMS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/sums.h"

namespace thinwire::kernels::cuda {

// The runs of a group.
constexpr size_t SumRuns(size_t group) { return (group + kSumRun - 1) / kSumRun; }

// For both: REQUIRES: group > 0; a result for each group, on the device.

// RUNS is room for each run of each group if a group has more than one.
Status SumBySign(std::span<const float> values, size_t group, std::span<SignSums> runs,
                 std::span<SignSums> sums, const Stream& stream);

Status RangeWithZero(std::span<const float> values, size_t group, std::span<Range> ranges,
                     const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SUMS_H_
