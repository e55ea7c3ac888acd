#include "common/base/repeatable_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace thinwire {
namespace {

void ExpectNear(double got, double want) {
  EXPECT_NEAR(got, want, 1e-13 * std::abs(want) + 1e-300);
}

TEST(RepeatableMathTest, IntegerPowerIsTheProduct) {
  EXPECT_EQ(IntegerPower(0.5, 10), 1.0 / 1024);
  EXPECT_EQ(IntegerPower(-3, 5), -243);
  EXPECT_EQ(IntegerPower(0, 0), 1);
  EXPECT_EQ(IntegerPower(0, 3), 0);
  EXPECT_EQ(IntegerPower(0.999, UINT64_MAX), 0);
  for (uint64_t n = 0; n < 300; ++n) ExpectNear(IntegerPower(0.999, n), std::pow(0.999, n));
}

TEST(RepeatableMathTest, PowerAgreesWithTheLibrary) {
  for (int i = 1; i <= 200; ++i) {
    for (double exponent : {0.0, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 20.25}) {
      SCOPED_TRACE(testing::Message() << i << "/200 ^ " << exponent);
      ExpectNear(Power(i / 200.0, exponent), std::pow(i / 200.0, exponent));
    }
  }
}

TEST(RepeatableMathTest, PowerIsExactAtTheLimits) {
  EXPECT_EQ(Power(0, 0), 1);
  EXPECT_EQ(Power(0, 0.5), 0);
  EXPECT_EQ(Power(1, 0.5), 1);
  EXPECT_EQ(Power(1, 1e300), 1);
  EXPECT_EQ(Power(0.5, 1e300), 0);
  EXPECT_EQ(Power(0.25, 0.5), 0.5);
}

TEST(RepeatableMathTest, HalfCosineAgreesWithTheLibraryAndIsExactAtTheEnds) {
  EXPECT_EQ(HalfCosine(0), 1);
  EXPECT_EQ(HalfCosine(1), 0);
  double last = 1;
  for (int i = 1; i <= 1000; ++i) {
    const double got = HalfCosine(i / 1000.0);
    EXPECT_NEAR(got, (1 + std::cos(std::numbers::pi * i / 1000)) / 2, 1e-15);
    EXPECT_LT(got, last) << "the function decreases";
    last = got;
  }
}

// The functions must return these exact bits with every machine, compiler and library.
TEST(RepeatableMathTest, GivesTheRecordedBits) {
  EXPECT_EQ(std::bit_cast<uint64_t>(IntegerPower(0.999, 12345)), 0x3ED22391FB9458B0u);
  EXPECT_EQ(std::bit_cast<uint64_t>(Power(0.3, 0.9)), 0x3FD5A8131B97FD82u);
  EXPECT_EQ(std::bit_cast<uint64_t>(HalfCosine(0.3)), 0x3FE96791823AAD2Fu);
  EXPECT_EQ(std::bit_cast<uint64_t>(HalfCosine(0.8)), 0x3FB8722191A02D5Du);
}

}  // namespace
}  // namespace thinwire
