// A BufferPool (common/buffer_pool.h) of pinned memory, for payloads that a GPU writes.
#ifndef THINWIRE_CLIENT_GPU_PINNED_POOL_H_
#define THINWIRE_CLIENT_GPU_PINNED_POOL_H_

#include "common/buffer_pool.h"

namespace thinwire::client::gpu {

BufferPool PinnedPool();

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_PINNED_POOL_H_
