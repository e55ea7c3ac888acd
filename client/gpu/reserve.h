// Memory that is kept from one shard to the next, and grows where a shard wants more.
#ifndef THINWIRE_CLIENT_GPU_RESERVE_H_
#define THINWIRE_CLIENT_GPU_RESERVE_H_

#include <cstddef>

#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

// BUFFER has room for COUNT values. Where it had not, nothing of what was in it is left.
template <typename T, typename Place>
kernels::cuda::Status Reserve(size_t count, kernels::cuda::Buffer<T, Place>& buffer) {
  return buffer.size() >= count ? kernels::cuda::Status() : buffer.Allocate(count);
}

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_RESERVE_H_
