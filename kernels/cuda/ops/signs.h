// One-bit codes on the GPU: the sign bit of value i is bit i % 8 of byte i / 8. Every group of
// GROUP values (the last group may be shorter) has two table entries: entries[2 g] for positive and
// entries[2 g + 1] for negative values.
//
//   PackSigns           bit = sign of value
//   PackSignsSubtract   bit = sign of value;  value -= entry of bit
//   UnpackSigns         out = entry of bit
//   UnpackSignsAdd      sum += entry of bit
//
// The CPU version, kernels/signs.h, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_SIGNS_H_
#define THINWIRE_KERNELS_CUDA_OPS_SIGNS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all functions: all arrays are in GPU memory; BITS points to ceil(n / 8) bytes for n
// < 2^32 values; group > 0; entries.size() is twice the number of groups. Unused bits of the last
// byte are written as 0.

Status PackSigns(std::span<const float> values, std::byte* bits, const Stream& stream);
Status PackSignsSubtract(std::span<const float> entries, size_t group, std::span<float> values,
                         std::byte* bits, const Stream& stream);

Status UnpackSigns(const std::byte* bits, std::span<const float> entries, size_t group,
                   std::span<float> out, const Stream& stream);
Status UnpackSignsAdd(const std::byte* bits, std::span<const float> entries, size_t group,
                      std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_SIGNS_H_
