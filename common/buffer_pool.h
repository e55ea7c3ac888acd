// BufferPool: buffers for bytes that others send, used again once their last slice is gone, so that
// a step like the one before it allocates none. gRPC may still hold a slice when the verdict is in,
// on threads of its own, and even when the pool is gone: the memory lives as long as its last user.
#ifndef THINWIRE_COMMON_BUFFER_POOL_H_
#define THINWIRE_COMMON_BUFFER_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace thinwire {

// Thread-safe.
class BufferPool {
 public:
  // With what gives it back.
  using Memory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;
  // Null where there is none of that SIZE.
  using Allocate = std::function<Memory(size_t size)>;

  struct Buffer {
    Memory bytes;
    size_t size = 0;

    std::span<std::byte> span() const { return {bytes.get(), size}; }
  };

  // Of the heap, or of memory from elsewhere.
  BufferPool();
  explicit BufferPool(Allocate allocate);

  // A buffer of at least SIZE bytes, of any content; null where there is no memory. It returns to
  // the pool with its last owner.
  std::shared_ptr<const Buffer> Take(size_t size);

  // How many buffers were ever allocated.
  size_t allocated_count() const;

 private:
  struct Free;
  const Allocate allocate_;
  std::shared_ptr<Free> free_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BUFFER_POOL_H_
