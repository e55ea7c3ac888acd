#include "worker/models/libtorch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace thinwire {
namespace {

class AutocastTest : public ::testing::Test {
 protected:
  at::Tensor Dense() const { return at::linear(x_, weight_); }

  const at::Tensor x_ = at::ones({2, 4});
  const at::Tensor weight_ = at::ones({3, 4}).set_requires_grad(true);
};

TEST_F(AutocastTest, DenseLayersUseThePrecisionDuringItsLifetime) {
  {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    EXPECT_EQ(Dense().scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(Dense().scalar_type(), at::kFloat);
}

TEST_F(AutocastTest, Fp32HasNoEffect) {
  const Autocast autocast(at::kCPU, at::kFloat);
  EXPECT_EQ(Dense().scalar_type(), at::kFloat);
}

TEST_F(AutocastTest, GradientsOfParametersAreFp32) {
  at::Tensor sum;
  {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    sum = Dense().to(at::kFloat).sum();
  }
  sum.backward();
  EXPECT_EQ(weight_.grad().scalar_type(), at::kFloat);
  EXPECT_TRUE(weight_.grad().equal(at::full({3, 4}, 2.0f)));
}

// While autocast is enabled, LibTorch caches the lower-precision copy of each parameter. The
// destructor of Autocast must delete this cache.
TEST_F(AutocastTest, AnOverwrittenParameterIsCastAgain) {
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    weight_.detach().fill_(value);
    const Autocast autocast(at::kCPU, at::kBFloat16);
    EXPECT_EQ(Dense()[0][0].item<float>(), 4 * value);
  }
}

TEST(TorchErrorTest, TheMessageHasItsPlaceAndNoBacktrace) {
  try {
    at::ones({2}).reshape({3});
    FAIL() << "the reshape must throw";
  } catch (const std::exception& error) {
    const absl::Status status = TorchError("net: forward", error);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), "net: forward: shape '[3]' is invalid for input of size 2");
  }
}

TEST(RecordCompletionTest, TheCpuNeedsNoWait) {
  EXPECT_EQ(RecordCompletion(c10::Device(c10::kCPU)), nullptr);
}

// RecordCompletion() may throw an exception, because its caller, TorchModel::Train(), converts
// exceptions to a Status.
TEST(RecordCompletionTest, AnUnsupportedDeviceThrows) {
  EXPECT_ANY_THROW(RecordCompletion(c10::Device(c10::kXLA, 0)));
}

}  // namespace
}  // namespace thinwire
