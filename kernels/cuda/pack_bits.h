// kernels/pack_bits.h on the GPU: codes of 1 to 8 bits, eight to a unit of `bits` bytes.
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_PACK_BITS_H_
#define THINWIRE_KERNELS_CUDA_PACK_BITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/pack_bits.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both: what kernels/pack_bits.h does.
Status PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed, const Stream& stream);

Status UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes,
                  const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_PACK_BITS_H_
