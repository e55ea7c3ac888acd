#include "kernels/cuda/runtime/device.h"

#include "gtest/gtest.h"
#include "kernels/cuda/runtime/cuda_fixture.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::kernels::cuda {
namespace {

using DeviceTest = CudaTest;

TEST_F(DeviceTest, HasANameAndMemory) {
  EXPECT_FALSE(DeviceName().empty());
  EXPECT_GT(DeviceMemoryBytes(), 0u);
}

TEST_F(DeviceTest, SelectingAMissingDeviceFails) {
  Expect(UseDevice(DeviceCount() - 1));
  const Status status = UseDevice(DeviceCount());
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "select a device: invalid device ordinal");
  Expect(UseDevice(0));
}

TEST(StatusTest, MessageNamesTheOperationAndTheError) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().message(), "ok");
  EXPECT_FALSE(Status("try", 1).ok());
  EXPECT_EQ(Status("try", 1).message(), "try: invalid argument");
}

}  // namespace
}  // namespace thinwire::kernels::cuda
