// PutHead: the first bytes of a payload, which the host knows, and its length. They travel with the
// launch, so that no memory of the host has to wait for the stream. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_PUT_HEAD_H_
#define THINWIRE_KERNELS_CUDA_PUT_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kMostHeadBytes = 32;

// Writes HEAD to OUT, any address, and LENGTH to SIZE; both on the device. REQUIRES: head.size() <=
// kMostHeadBytes.
Status PutHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
               const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_PUT_HEAD_H_
