#include "worker/models/autocast.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

class AutocastTest : public ::testing::Test {
 protected:
  at::Tensor Dense() const { return at::linear(x_, weight_); }

  const at::Tensor x_ = at::ones({2, 4});
  const at::Tensor weight_ = at::ones({3, 4}).set_requires_grad(true);
};

TEST_F(AutocastTest, DenseLayersComputeInThePrecisionWhileItLives) {
  {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    EXPECT_EQ(Dense().scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(Dense().scalar_type(), at::kFloat);
}

TEST_F(AutocastTest, InFp32NothingChanges) {
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

// LibTorch keeps a parameter's cast for as long as autocast is on.
TEST_F(AutocastTest, AParameterThatWasWrittenIsCastAnew) {
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    weight_.detach().fill_(value);
    const Autocast autocast(at::kCPU, at::kBFloat16);
    EXPECT_EQ(Dense()[0][0].item<float>(), 4 * value);
  }
}

}  // namespace
}  // namespace thinwire
