// BufferPool: byte buffers for encoded pushes. A buffer is reused when gRPC has released the last
// slice that refers to it, so that repeated steps allocate nothing.
//
// gRPC may release a slice on its own threads, after the verdict of the slice's push and even after
// the pool is destroyed. The slice's buffer returns to the pool if the pool still exists, and is
// freed otherwise.
#ifndef THINWIRE_COMMON_MEMORY_BUFFER_POOL_H_
#define THINWIRE_COMMON_MEMORY_BUFFER_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>

namespace thinwire {

// Thread-safe.
class BufferPool {
 public:
  // A memory buffer that its deleter frees.
  using Memory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;
  // Returns a new buffer of SIZE bytes, or null if there is not enough memory.
  using Allocate = std::function<Memory(size_t size)>;

  struct Buffer {
    Memory bytes;
    size_t size = 0;

    std::span<std::byte> span() const { return {bytes.get(), size}; }
  };

  // Creates a pool that allocates its buffers from the memory resource MEMORY, which must outlive
  // the pool and every buffer.
  explicit BufferPool(std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  // Creates a pool that allocates its buffers with the function ALLOCATE. The function may fail,
  // for example because pinned memory is limited.
  explicit BufferPool(Allocate allocate);

  // Returns a buffer of SIZE bytes with undefined content, or null if there is not enough memory.
  // The buffer returns to the pool when its last owner releases it.
  std::shared_ptr<const Buffer> Take(size_t size);

  // Returns the number of buffers that the pool has allocated since its creation, including buffers
  // that were freed.
  size_t allocated_count() const;

 private:
  struct Free;
  const Allocate allocate_;
  std::shared_ptr<Free> free_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_BUFFER_POOL_H_
