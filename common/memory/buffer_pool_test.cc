#include "common/memory/buffer_pool.h"

#include <gtest/gtest.h>

#include "common/memory/byte_chain.h"

namespace thinwire {
namespace {

TEST(BufferPoolTest, ABufferIsUsedAgainWhenItsLastSliceIsGone) {
  BufferPool pool;
  const std::byte* first;
  ByteChain slice;
  {
    auto buffer = pool.Take(100);
    first = buffer->bytes.get();
    slice = ByteChain(buffer->span().first(10), buffer);
  }
  EXPECT_NE(pool.Take(100)->bytes.get(), first) << "a slice of it is still in use";
  slice = ByteChain();
  EXPECT_EQ(pool.allocated_count(), 2u);
  auto a = pool.Take(100), b = pool.Take(100);
  EXPECT_EQ(pool.allocated_count(), 2u);
}

TEST(BufferPoolTest, ASliceOutlivesThePool) {
  ByteChain slice;
  {
    BufferPool pool;
    auto buffer = pool.Take(4);
    buffer->span()[3] = std::byte{7};
    slice = ByteChain(buffer->span(), buffer);
  }
  EXPECT_EQ(slice.At(3), std::byte{7});
}

TEST(BufferPoolTest, MemoryFromElsewhereGoesBackThereAndMayRunOut) {
  int out = 0;
  const auto own = [&](size_t size) -> BufferPool::Memory {
    if (size > 100) return nullptr;
    ++out;
    return {new std::byte[size], [&out](std::byte* bytes) {
              --out;
              delete[] bytes;
            }};
  };
  {
    BufferPool pool(own);
    EXPECT_EQ(pool.Take(101), nullptr);
    EXPECT_NE(pool.Take(100), nullptr);
    EXPECT_NE(pool.Take(100), nullptr);
    EXPECT_EQ(out, 1);
    EXPECT_EQ(pool.allocated_count(), 1u);
  }
  EXPECT_EQ(out, 0);
}

}  // namespace
}  // namespace thinwire
