#include "common/memory/huge_page_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "common/memory/buffer_pool.h"
#include "common/memory/float_array.h"

namespace thinwire {
namespace {

constexpr size_t kHugePage = HugePageArena::kHugePage;
constexpr size_t kPage = HugePageArena::kPage;
constexpr size_t kMapping = HugePageArena::kSmallestMapping;

uintptr_t Address(const void* array) { return reinterpret_cast<uintptr_t>(array); }

TEST(HugePageArena, ArraysOfAShardShareAHugePage) {
  HugePageArena arena(1);
  void* const first = arena.allocate(kHugePage / 2);
  void* const second = arena.allocate(kHugePage / 2);
  EXPECT_EQ(Address(first) % kHugePage, 0);
  EXPECT_EQ(Address(second), Address(first) + kHugePage / 2);
  EXPECT_EQ(arena.mapped_bytes(), kMapping);
  arena.deallocate(first, kHugePage / 2);
  arena.deallocate(second, kHugePage / 2);
}

TEST(HugePageArena, ArraysBeginOnPageBoundaries) {
  HugePageArena arena(1);
  void* const odd = arena.allocate(kPage + 1);
  void* const next = arena.allocate(1);
  EXPECT_EQ(Address(next), Address(odd) + 2 * kPage);
  arena.deallocate(odd, kPage + 1);
  arena.deallocate(next, 1);
}

TEST(HugePageArena, FreedRangesAreAllocatedAgain) {
  HugePageArena arena(1);
  void* const first = arena.allocate(3 * kPage);
  void* const second = arena.allocate(3 * kPage);
  void* const third = arena.allocate(3 * kPage);
  arena.deallocate(first, 3 * kPage);
  arena.deallocate(second, 3 * kPage);
  EXPECT_EQ(arena.allocate(6 * kPage), first) << "adjacent free ranges are merged";
  arena.deallocate(third, 3 * kPage);
  EXPECT_EQ(arena.allocate(kPage), third);
}

TEST(HugePageArena, AnUnusedMappingReturnsToTheSystem) {
  HugePageArena arena(1);
  void* const large = arena.allocate(kMapping + 1);
  EXPECT_EQ(arena.mapped_bytes(), kMapping + kHugePage);
  void* const full = arena.allocate(kMapping);
  EXPECT_EQ(arena.mapped_bytes(), 2 * kMapping + kHugePage);
  arena.deallocate(large, kMapping + 1);
  EXPECT_EQ(arena.mapped_bytes(), kMapping);
  arena.deallocate(full, kMapping);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

TEST(HugePageArena, ThrowsBadAllocWithoutMemory) {
  HugePageArena arena(1);
  EXPECT_THROW((void)arena.allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW((void)arena.allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

// The system may place one mapping directly behind another. The arena must not merge the free
// ranges of two mappings.
TEST(HugePageArena, ArraysNeverOverlap) {
  HugePageArena arena(1);
  struct Array {
    unsigned char* bytes;
    size_t size;
    unsigned char mark;
  };
  std::vector<Array> arrays;
  std::mt19937 random(1);
  int freed_count = 0;
  for (int round = 0; round < 2000; ++round) {
    if (arrays.size() < 60 && random() % 2 == 0) {
      const size_t size = 1 + random() % (random() % 8 == 0 ? 3 * kHugePage : 20 * kPage);
      const auto mark = static_cast<unsigned char>(random());
      auto* const bytes = static_cast<unsigned char*>(arena.allocate(size));
      bytes[0] = bytes[size / 2] = bytes[size - 1] = mark;
      arrays.push_back({bytes, size, mark});
    } else if (!arrays.empty()) {
      std::swap(arrays[random() % arrays.size()], arrays.back());
      const auto [bytes, size, mark] = arrays.back();
      ASSERT_EQ(bytes[0], mark);
      ASSERT_EQ(bytes[size / 2], mark);
      ASSERT_EQ(bytes[size - 1], mark);
      arena.deallocate(bytes, size);
      arrays.pop_back();
      ++freed_count;
      for (const Array& other : arrays) {
        ASSERT_TRUE(other.bytes + other.size <= bytes || bytes + size <= other.bytes);
      }
    }
  }
  EXPECT_GT(freed_count, 500);
  for (const auto& [bytes, size, mark] : arrays) arena.deallocate(bytes, size);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

TEST(HugePageArena, SmallArraysComeFromTheHeap) {
  HugePageArena arena(kPage);
  FloatArray small(10, 2.0f, &arena);
  EXPECT_EQ(arena.mapped_bytes(), 0);
  const FloatArray large(kPage / sizeof(float), 1.0f, &arena);
  EXPECT_EQ(arena.mapped_bytes(), kMapping);
  small = large;
  EXPECT_EQ(small, large);
}

TEST(HugePageArena, AFloatArrayStaysInItWhenMovedAndResized) {
  HugePageArena arena(1);
  FloatArray large(262144, &arena);
  EXPECT_TRUE(std::ranges::all_of(large, [](float value) { return value == 0; }));
  large[262143] = 1;
  FloatArray moved = std::move(large);
  EXPECT_EQ(moved.get_allocator().resource(), &arena);
  EXPECT_EQ(moved.back(), 1);
  moved.resize(10 << 20);
  EXPECT_EQ(arena.mapped_bytes(), 20 * kHugePage) << "the first mapping is unused and gone";
}

TEST(HugePageArena, ServesManyThreads) {
  HugePageArena arena(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&arena, i] {
      for (int round = 0; round < 100; ++round) {
        const FloatArray mine(30000 + 1000 * static_cast<size_t>(i), static_cast<float>(i), &arena);
        ASSERT_EQ(mine.front() + mine.back(), static_cast<float>(2 * i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

TEST(HugePageArena, ServesABufferPool) {
  HugePageArena arena(kPage);
  {
    BufferPool pool(&arena);
    for (size_t size : {size_t{100}, size_t{1} << 20, size_t{4} << 20}) {
      const auto buffer = pool.Take(size);
      std::memset(buffer->bytes.get(), 1, size);
    }
    EXPECT_EQ(pool.allocated_count(), 3);
    EXPECT_EQ(arena.mapped_bytes(), kMapping);
  }
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

}  // namespace
}  // namespace thinwire
