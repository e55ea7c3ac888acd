// The table of the int8 codec on the GPU: 256 evenly spaced values from the least to the largest
// value of an array, one of them exactly 0.
//
//   step = most / 255 - least / 255
//   zero = trunc(-least / step + 0.5), clamped to 0 .. 255     the code of 0
//   table[c] = step * (c - zero)
//
// The CPU version, common/codec/codebook/int8.cc, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_AFFINE_TABLE_H_
#define THINWIRE_KERNELS_CUDA_OPS_AFFINE_TABLE_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {

// The outputs of FitAffineTable(), in GPU memory.
struct AffineTable {
  std::byte* zero_byte;               // receives the code of the value 0
  std::byte* step_bytes;              // receives the step, an unaligned float
  std::span<float, 2> step_and_zero;  // receives the step and the code of the value 0
  std::span<float, 256> table;
};

// Writes the table for the smallest range that contains all RANGES, which are the ranges of the
// groups of an array (RangeWithZero() in reductions.h). If all values are 0, the step and the table
// are 0. REQUIRES: all ranges are finite.
Status FitAffineTable(std::span<const Range> ranges, const AffineTable& out, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_AFFINE_TABLE_H_
