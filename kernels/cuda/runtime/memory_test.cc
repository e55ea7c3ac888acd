#include "kernels/cuda/runtime/memory.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/runtime/cuda_fixture.h"

namespace thinwire::kernels::cuda {
namespace {

using BufferTest = CudaTest;

TEST_F(BufferTest, CopiesArriveAndClearSetsZeros) {
  PinnedBuffer<uint32_t> from, to;
  DeviceBuffer<uint32_t> device, other;
  for (auto* pinned : {&from, &to}) Expect(pinned->Allocate(5000));
  for (auto* buffer : {&device, &other}) Expect(buffer->Allocate(5000));
  std::iota(from.span().begin(), from.span().end(), 7u);
  Expect(CopyToDevice(from.span(), device.span(), stream_));
  Expect(CopyOnDevice(device.span(), other.span(), stream_));
  Expect(CopyToHost(other.span(), to.span(), stream_));
  Expect(stream_.Wait());
  EXPECT_TRUE(std::ranges::equal(from.span(), to.span()));
  Expect(Clear(std::as_writable_bytes(device.span()).subspan(4), stream_));
  Expect(CopyToHost(device.span(), to.span(), stream_));
  Expect(stream_.Wait());
  EXPECT_EQ(to.span()[0], 7u);
  EXPECT_EQ(std::accumulate(to.span().begin() + 1, to.span().end(), 0u), 0u);
}

TEST_F(BufferTest, BeginsAtAMultipleOf256Bytes) {
  for (const size_t count : {1, 3, 1000}) {
    DeviceBuffer<char> device;
    PinnedBuffer<char> pinned;
    Expect(device.Allocate(count));
    Expect(pinned.Allocate(count));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(device.data()) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned.data()) % 256, 0u);
  }
}

TEST_F(BufferTest, AFailedAllocationReturnsAnErrorAndLeavesTheBufferEmpty) {
  DeviceBuffer<double> buffer;
  Expect(buffer.Allocate(10));
  const Status status = buffer.Allocate(SIZE_MAX / 16);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "allocate device memory: out of memory");
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_FALSE(buffer.Allocate(SIZE_MAX / 4).ok()) << "the byte count overflows";
  Expect(buffer.Allocate(10));
  EXPECT_EQ(buffer.size(), 10u);
  // The next launch succeeds, although an allocation failed before.
  Expect(Clear(std::as_writable_bytes(buffer.span()), stream_));
  Expect(stream_.Wait());
}

TEST_F(BufferTest, AMovedFromBufferIsEmpty) {
  DeviceBuffer<int> buffer;
  Expect(buffer.Allocate(3));
  int* const data = buffer.data();
  DeviceBuffer<int> other = std::move(buffer);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(other.data(), data);
  buffer = std::move(other);
  EXPECT_EQ(buffer.data(), data);
}

TEST_F(BufferTest, ReserveReallocatesOnlyToGrow) {
  DeviceBuffer<int> buffer;
  Expect(buffer.Reserve(10));
  EXPECT_EQ(buffer.size(), 10u);
  int* const data = buffer.data();
  Expect(buffer.Reserve(3));
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(buffer.size(), 10u);
  Expect(buffer.Reserve(11));
  EXPECT_EQ(buffer.size(), 11u);
}

TEST_F(BufferTest, ZeroValuesNeedNoMemory) {
  DeviceBuffer<int> buffer;
  Expect(buffer.Allocate(0));
  EXPECT_EQ(buffer.data(), nullptr);
  Expect(CopyToDevice({}, buffer.span(), stream_));
}

}  // namespace
}  // namespace thinwire::kernels::cuda
