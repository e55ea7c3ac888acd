// Maps values to small integer codes and back, on the GPU. All arrays, including THRESHOLDS and
// TABLE, are in GPU memory.
//
//   CodesOfMagnitudes   code = (number of thresholds <= |v|) | sign << (bits - 1)
//   CodesOfSteps        code = v / step + zero, rounded half up and clamped to 0 .. 255
//   LookUp              out = table[code]
//   LookUpAdd           sum += table[code]
//   LookUpSubtract      values -= table[code]
//
// The code of -0.0 has its sign bit set. For a NaN, the code without its sign bit is 0. The CPU
// version, kernels/codes.h, computes the same bits. CodesOfLevels() has no GPU version, because
// qsgd.h contains fused kernels for QSGD. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_CODES_H_
#define THINWIRE_KERNELS_CUDA_OPS_CODES_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all functions: the arrays of codes and values have equal lengths.

// REQUIRES: 1 <= bits <= 8; thresholds.size() == 2^(bits - 1) - 1; THRESHOLDS are in ascending
// order.
Status CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                         std::span<uint8_t> codes, const Stream& stream);

// STEP_AND_ZERO contains two numbers: the step, and `zero`, the code of the value 0. If the step is
// 0, every code is `zero`. REQUIRES: 0 <= zero <= 255.
Status CodesOfSteps(std::span<const float> values, std::span<const float, 2> step_and_zero,
                    std::span<uint8_t> codes, const Stream& stream);

// REQUIRES, for the three functions below: every code is less than table.size().

Status LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out,
              const Stream& stream);
Status LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum,
                 const Stream& stream);
Status LookUpSubtract(std::span<const uint8_t> codes, std::span<const float> table,
                      std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_CODES_H_
