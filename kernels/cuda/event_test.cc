#include "kernels/cuda/event.h"

#include <algorithm>

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class EventTest : public TwinTest {
 protected:
  void SetUp() override {
    TwinTest::SetUp();
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

TEST_F(EventTest, IsReachedWhenWhatCameBeforeHasRun) {
  Event event;
  Expect(event.Open());
  EXPECT_TRUE(event.Reached()) << "was never recorded";
  Expect(event.Wait());
  Expect(CopyToDevice(host_.span(), device_.span(), stream_));
  Expect(CopyToHost(device_.span(), result_.span(), stream_));
  Expect(event.Record(stream_));
  Expect(event.Wait());
  EXPECT_TRUE(event.Reached());
  EXPECT_EQ(result_.span()[kCount - 1], 1u);
}

TEST_F(EventTest, HoldsAnotherStreamBack) {
  Stream other;
  Event event;
  Expect(other.Open());
  Expect(event.Open());
  Expect(CopyToDevice(host_.span(), device_.span(), stream_));
  Expect(event.Record(stream_));
  Expect(event.HoldBack(other));
  Expect(CopyToHost(device_.span(), result_.span(), other));
  Expect(other.Wait());
  EXPECT_EQ(result_.span()[kCount - 1], 1u);
}

TEST_F(EventTest, TwoMeasureWhatIsBetween) {
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
