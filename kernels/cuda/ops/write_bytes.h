// Writes a few bytes from the host to GPU memory. The bytes are passed as kernel arguments, so the
// caller may overwrite them as soon as the function returns. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_WRITE_BYTES_H_
#define THINWIRE_KERNELS_CUDA_OPS_WRITE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kMaxWriteBytes = 32;

// Copies BYTES to OUT, which need not be aligned. REQUIRES: bytes.size() <= kMaxWriteBytes.
Status WriteBytes(std::span<const std::byte> bytes, std::byte* out, const Stream& stream);

// Copies HEAD, the first bytes of a payload, to OUT and sets SIZE to LENGTH, the length of the
// payload. REQUIRES: head.size() <= kMaxWriteBytes; SIZE is in GPU memory.
Status WriteHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
                 const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_WRITE_BYTES_H_
