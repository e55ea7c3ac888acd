#include "client/gpu/pinned_pool.h"

#include <memory>

#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

BufferPool PinnedPool() {
  return BufferPool([](size_t size) -> BufferPool::Memory {
    auto pinned = std::make_shared<kernels::cuda::PinnedBuffer<std::byte>>();
    if (!pinned->Allocate(size).ok()) return nullptr;
    std::byte* const bytes = pinned->data();
    return {bytes, [pinned = std::move(pinned)](std::byte*) {}};
  });
}

}  // namespace thinwire::client::gpu
