#include "kernels/cuda/runtime/stream.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "kernels/cuda/runtime/cuda_fixture.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::kernels::cuda {
namespace {

using StreamTest = CudaTest;

TEST_F(StreamTest, RunsLaunchesInTheirOrder) {
  PinnedBuffer<uint32_t> host;
  DeviceBuffer<uint32_t> device;
  Expect(host.Allocate(3));
  Expect(device.Allocate(3));
  host.span()[0] = 1, host.span()[1] = 2, host.span()[2] = 3;
  Expect(CopyToDevice(host.span(), device.span(), stream_));
  Expect(Clear(std::as_writable_bytes(device.span().first(1)), stream_));
  Expect(CopyToHost(device.span(), host.span(), stream_));
  Expect(stream_.Wait());
  EXPECT_EQ(host.span()[0], 0u);
  EXPECT_EQ(host.span()[1], 2u);
  EXPECT_EQ(host.span()[2], 3u);
}

class EventTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    for (auto* buffer : {&host_, &result_}) Expect(buffer->Allocate(kCount));
    Expect(device_.Allocate(kCount));
    std::ranges::fill(host_.span(), 1u);
    std::ranges::fill(result_.span(), 0u);
  }

  static constexpr size_t kCount = 1 << 20;
  PinnedBuffer<uint32_t> host_, result_;
  DeviceBuffer<uint32_t> device_;
};

TEST_F(EventTest, IsReachedAfterAllEarlierLaunches) {
  Event event;
  Expect(event.Open());
  EXPECT_TRUE(event.Reached()) << "before the first Record()";
  Expect(event.Wait());
  Expect(CopyToDevice(host_.span(), device_.span(), stream_));
  Expect(CopyToHost(device_.span(), result_.span(), stream_));
  Expect(event.Record(stream_));
  Expect(event.Wait());
  EXPECT_TRUE(event.Reached());
  EXPECT_EQ(result_.span()[kCount - 1], 1u);
}

TEST_F(EventTest, DelaysAnotherStream) {
  Stream other;
  Event event;
  Expect(other.Open());
  Expect(event.Open());
  Expect(CopyToDevice(host_.span(), device_.span(), stream_));
  Expect(event.Record(stream_));
  Expect(event.Delay(other));
  Expect(CopyToHost(device_.span(), result_.span(), other));
  Expect(other.Wait());
  EXPECT_EQ(result_.span()[kCount - 1], 1u);
}

TEST_F(EventTest, TwoTimedEventsMeasureTheTimeBetweenThem) {
  Event begin, end;
  Expect(begin.Open(/*timed=*/true));
  Expect(end.Open(/*timed=*/true));
  Expect(begin.Record(stream_));
  Expect(CopyToDevice(host_.span(), device_.span(), stream_));
  Expect(end.Record(stream_));
  Expect(end.Wait());
  float milliseconds = -1;
  Expect(MillisecondsBetween(begin, end, milliseconds));
  EXPECT_GE(milliseconds, 0);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
