// EvenSteps: the table of int8, 256 even steps from the least value to the largest, from the ranges
// of some values (sums.h). One of its entries is exactly 0.
//
//   step = most / 255 - least / 255;   zero = trunc(-least / step + .5), from 0 to 255
//   entry c = step (c - zero)
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_EVEN_STEPS_H_
#define THINWIRE_KERNELS_CUDA_EVEN_STEPS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/sums.h"

namespace thinwire::kernels::cuda {

// Where they go, on the device.
struct Steps {
  std::byte* zero_byte;
  std::byte* step_bytes;              // a float at any address
  std::span<float, 2> step_and_zero;  // for CodesOfSteps
  std::span<float, 256> table;
};

// REQUIRES: finite ranges.
Status EvenSteps(std::span<const Range> ranges, const Steps& out, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_EVEN_STEPS_H_
