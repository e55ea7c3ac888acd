#include "common/memory/buffer_pool.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

struct BufferPool::Free {
  absl::Mutex mu;
  std::map<size_t, std::vector<std::unique_ptr<Buffer>>> by_size ABSL_GUARDED_BY(mu);
  size_t allocated_count ABSL_GUARDED_BY(mu) = 0;
};

BufferPool::BufferPool(std::pmr::memory_resource* memory)
    : BufferPool([memory](size_t size) {
        return Memory(static_cast<std::byte*>(memory->allocate(size)),
                      [memory, size](std::byte* bytes) { memory->deallocate(bytes, size); });
      }) {}

BufferPool::BufferPool(Allocate allocate)
    : allocate_(std::move(allocate)), free_(std::make_shared<Free>()) {}

std::shared_ptr<const BufferPool::Buffer> BufferPool::Take(size_t size) {
  std::unique_ptr<Buffer> buffer;
  {
    absl::MutexLock lock(&free_->mu);
    std::vector<std::unique_ptr<Buffer>>& row = free_->by_size[size];
    if (!row.empty()) {
      buffer = std::move(row.back());
      row.pop_back();
    }
  }
  if (buffer == nullptr) {
    Memory bytes = allocate_(size);
    if (bytes == nullptr) return nullptr;
    buffer = std::make_unique<Buffer>(Buffer{std::move(bytes), size});
    absl::MutexLock lock(&free_->mu);
    ++free_->allocated_count;
  }
  auto give_back = [free = free_](Buffer* used) {
    absl::MutexLock lock(&free->mu);
    free->by_size[used->size].emplace_back(used);
  };
  return {buffer.release(), std::move(give_back)};
}

size_t BufferPool::allocated_count() const {
  absl::MutexLock lock(&free_->mu);
  return free_->allocated_count;
}

}  // namespace thinwire
