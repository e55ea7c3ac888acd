// Packs codes of 1 to 8 bits on the GPU, eight codes into a unit of `bits` bytes. The CPU version,
// kernels/pack_bits.h, defines the layout and computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_PACK_BITS_H_
#define THINWIRE_KERNELS_CUDA_OPS_PACK_BITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/pack_bits.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both functions: 1 <= bits <= 8; PACKED points to PackedBytes(codes.size(), bits)
// bytes of GPU memory, which need not be aligned.

// REQUIRES: every code is less than 2^bits.
Status PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed, const Stream& stream);

Status UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes,
                  const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_PACK_BITS_H_
