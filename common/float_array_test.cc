#include "common/float_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

TEST(FloatArray, IsAVector) {
  FloatArray large(262144), small(10, 2.0f);
  EXPECT_TRUE(std::ranges::all_of(large, [](float value) { return value == 0; }));
  large[262143] = 1;
  FloatArray moved = std::move(large);
  EXPECT_EQ(moved.back(), 1);
  moved = small;
  EXPECT_EQ(moved, small);
}

TEST(FloatArray, ManyThreadsTakeAndGiveBack) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int turn = 0; turn < 100; ++turn) {
        const FloatArray mine(30000 + 1000 * static_cast<size_t>(i), static_cast<float>(i));
        ASSERT_EQ(mine.front() + mine.back(), static_cast<float>(2 * i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(AllocateArray, OfAPool) {
  BufferPool pool(AllocateArray);
  for (size_t size : {size_t{100}, size_t{1} << 20, size_t{4} << 20}) {
    const auto buffer = pool.Take(size);
    std::memset(buffer->bytes.get(), 1, size);
  }
  EXPECT_EQ(pool.allocated_count(), 3);
}

}  // namespace
}  // namespace thinwire
