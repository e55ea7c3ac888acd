#include "kernels/cuda/stream.h"

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

using StreamTest = TwinTest;

TEST_F(StreamTest, RunsWhatIsLaunchedInItsOrder) {
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

TEST_F(StreamTest, ThereIsADeviceWithAName) {
  EXPECT_FALSE(DeviceName().empty());
  EXPECT_GT(DeviceMemoryBytes(), 0u);
  Expect(UseDevice(DeviceCount() - 1));
  const Status status = UseDevice(DeviceCount());
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "use a device: invalid device ordinal");
  Expect(UseDevice(0));
}

TEST(StatusTest, OfWhatWentWellSaysOk) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().message(), "ok");
  EXPECT_FALSE(Status("try", 1).ok());
  EXPECT_EQ(Status("try", 1).message(), "try: invalid argument");
}

}  // namespace
}  // namespace thinwire::kernels::cuda
