// Codebooks of the one-bit codecs on the GPU, computed from the sums of each group of values
// (SumBySign in reductions.h):
//
//   MeansBySign      entries p, m: means of the group's positive and negative values, or 0 for none
//   MeanMagnitudes   entries a, -a: a is the group's mean magnitude
//
// Both functions also write p and m, or a, to the payload as floats that may be unaligned.
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_SIGN_MEANS_H_
#define THINWIRE_KERNELS_CUDA_OPS_SIGN_MEANS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {

// Describes COUNT values in groups of GROUP values; the last group may be shorter.
struct Groups {
  size_t count;
  size_t group;
};

// REQUIRES, for both functions: all arrays are in GPU memory; sums.size() is the number of groups;
// entries.size() == 2 * sums.size().

Status MeansBySign(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                   std::span<float> entries, const Stream& stream);

Status MeanMagnitudes(std::span<const SignSums> sums, const Groups& groups, std::byte* numbers,
                      std::span<float> entries, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_SIGN_MEANS_H_
