// kernels/codes.h on the GPU: values to small codes, and back by a table. THRESHOLDS and TABLE lie
// on the device, too. (Codes of levels have passes of their own: levels.h.) Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_CODES_H_
#define THINWIRE_KERNELS_CUDA_CODES_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all: what kernels/codes.h does.
Status CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                         std::span<uint8_t> codes, const Stream& stream);

// STEP_AND_ZERO lie on the device; where the step is 0 all codes are the zero.
Status CodesOfSteps(std::span<const float> values, std::span<const float, 2> step_and_zero,
                    std::span<uint8_t> codes, const Stream& stream);

Status LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out,
              const Stream& stream);
Status LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum,
                 const Stream& stream);
// values -= table[code]
Status LookUpTake(std::span<const uint8_t> codes, std::span<const float> table,
                  std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_CODES_H_
