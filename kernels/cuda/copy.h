// Copies between the host and the GPU, on a stream: the caller goes on at once, and both arrays
// stay as they are until the stream has been there. From or to memory that is not pinned the copy
// is right, too, but the host may wait. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_COPY_H_
#define THINWIRE_KERNELS_CUDA_COPY_H_

#include <cstddef>
#include <span>
#include <type_traits>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// For all: REQUIRES from.size() == to.size().

Status CopyBytesToDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream);
Status CopyBytesToHost(std::span<const std::byte> from, std::span<std::byte> to,
                       const Stream& stream);
Status CopyBytesOnDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream);

template <typename T>
Status CopyToDevice(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                    const Stream& stream) {
  return CopyBytesToDevice(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

template <typename T>
Status CopyToHost(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                  const Stream& stream) {
  return CopyBytesToHost(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

template <typename T>
Status CopyOnDevice(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                    const Stream& stream) {
  return CopyBytesOnDevice(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

// All bits of an array on the device to 0.
Status Clear(std::span<std::byte> bytes, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_COPY_H_
