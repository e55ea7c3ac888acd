// The numbers of codes of one bit, from the sums of each group of values (sums.h).
//
//   MeansBySign      p, m: the means of the values of either sign; 0 where there are none
//   MeanMagnitudes   a: the mean magnitude
//
// Both write a group's numbers to a payload, as floats at any address, and the two entries of its
// table, p and m, or a and -a. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SIGN_MEANS_H_
#define THINWIRE_KERNELS_CUDA_SIGN_MEANS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/sums.h"

namespace thinwire::kernels::cuda {

// COUNT values in groups of GROUP, the last of which may be shorter.
struct Groups {
  size_t count;
  size_t group;
};

// For both: REQUIRES: all on the device; entries.size() == 2 * sums.size(), a sum for each group.

Status MeansBySign(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                   std::span<float> entries, const Stream& stream);

Status MeanMagnitudes(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                      std::span<float> entries, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SIGN_MEANS_H_
