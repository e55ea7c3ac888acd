// BufferPool: byte buffers that are reused when their last slice is released, so that repeated
// steps allocate nothing.
//
// gRPC may release a slice on its own threads, after the verdict of its push and even after the
// pool is destroyed. The buffer is returned to the pool if the pool exists, and freed otherwise.
#ifndef THINWIRE_COMMON_BUFFER_POOL_H_
#define THINWIRE_COMMON_BUFFER_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>

namespace thinwire {

// Thread-safe.
class BufferPool {
 public:
  // Bytes and the function that frees them.
  using Memory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;
  // Returns null if there is no memory of SIZE bytes.
  using Allocate = std::function<Memory(size_t size)>;

  struct Buffer {
    Memory bytes;
    size_t size = 0;

    std::span<std::byte> span() const { return {bytes.get(), size}; }
  };

  // MEMORY outlives every buffer, not only the pool.
  explicit BufferPool(std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  // Gets memory from ALLOCATE, which may return null. For memory that can run out, such as pinned
  // memory.
  explicit BufferPool(Allocate allocate);

  // Returns a buffer of SIZE bytes with undefined content, or null if there is no memory. The
  // buffer returns to the pool when its last owner releases it.
  std::shared_ptr<const Buffer> Take(size_t size);

  // Returns how many buffers were ever allocated.
  size_t allocated_count() const;

 private:
  struct Free;
  const Allocate allocate_;
  std::shared_ptr<Free> free_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BUFFER_POOL_H_
