// BufferPool: buffers for bytes that others send, used again once their last slice is gone, so that
// a step like the one before it allocates none. gRPC may still hold a slice when the verdict is in,
// on threads of its own, and even when the pool is gone: the memory lives as long as its last user.
#ifndef THINWIRE_COMMON_BUFFER_POOL_H_
#define THINWIRE_COMMON_BUFFER_POOL_H_

#include <cstddef>
#include <memory>
#include <span>

namespace thinwire {

// Thread-safe.
class BufferPool {
 public:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;

    std::span<std::byte> span() const { return {bytes.get(), size}; }
  };

  BufferPool();

  // A buffer of at least SIZE bytes, of any content. It returns to the pool with its last owner.
  std::shared_ptr<const Buffer> Take(size_t size);

  // How many buffers were ever allocated.
  size_t allocated_count() const;

 private:
  struct Free;
  std::shared_ptr<Free> free_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BUFFER_POOL_H_
