// A few bytes that the host knows, put on the device. They travel with the launch, so that no
// memory of the host has to wait for the stream. Thread-safe.
//
//   PutBytes   bytes at any address
//   PutHead    those that a payload begins with, and its length
#ifndef THINWIRE_KERNELS_CUDA_PUT_BYTES_H_
#define THINWIRE_KERNELS_CUDA_PUT_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kMostBytesPut = 32;

// For both: REQUIRES: at most kMostBytesPut; OUT and SIZE are on the device.

Status PutBytes(std::span<const std::byte> bytes, std::byte* out, const Stream& stream);

Status PutHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
               const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_PUT_BYTES_H_
