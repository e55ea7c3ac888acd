#include "kernels/number_format.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

// Returns the value of a finite, positive code, computed from the definition of the format.
template <typename Format>
double ValueOf(uint32_t code) {
  const int mantissa = static_cast<int>(code & ((1u << Format::kMantissaBits) - 1));
  const int exponent = static_cast<int>(code >> Format::kMantissaBits);
  if (exponent == 0) return std::ldexp(mantissa, 1 - Format::kBias - Format::kMantissaBits);
  return std::ldexp(mantissa + (1 << Format::kMantissaBits),
                    exponent - Format::kBias - Format::kMantissaBits);
}

template <typename Format>
uint32_t Encoded(double value) {
  return EncodeValue<Format>(static_cast<float>(value));
}

template <typename Format>
class NumberFormatTest : public testing::Test {};
using Formats = testing::Types<Fp16, Bf16, Fp8E5m2, Fp8E4m3>;
TYPED_TEST_SUITE(NumberFormatTest, Formats);

TYPED_TEST(NumberFormatTest, EveryFiniteCodeDecodesToItsDefinition) {
  for (uint32_t code = 0; code <= TypeParam::kMaxFinite; ++code) {
    ASSERT_EQ(DecodeValue<TypeParam>(code), ValueOf<TypeParam>(code)) << code;
    const uint32_t negative = code | kSignBit<TypeParam>;
    ASSERT_EQ(DecodeValue<TypeParam>(negative), -ValueOf<TypeParam>(code)) << code;
    ASSERT_TRUE(IsFiniteCode<TypeParam>(negative)) << code;
  }
}

TYPED_TEST(NumberFormatTest, EncodingADecodedCodeReturnsTheCode) {
  for (uint32_t code = 0; code <= TypeParam::kMaxFinite; ++code) {
    const double value = ValueOf<TypeParam>(code);
    ASSERT_EQ(Encoded<TypeParam>(value), code);
    ASSERT_EQ(Encoded<TypeParam>(-value), code | kSignBit<TypeParam>);
  }
}

TYPED_TEST(NumberFormatTest, MidpointsRoundToEvenAndTheirNeighborsToTheNearest) {
  for (uint32_t code = 0; code < TypeParam::kMaxFinite; ++code) {
    const double middle = (ValueOf<TypeParam>(code) + ValueOf<TypeParam>(code + 1)) / 2;
    const float middle_float = static_cast<float>(middle);
    ASSERT_EQ(middle_float, middle);
    ASSERT_EQ(Encoded<TypeParam>(middle), code + code % 2) << code;
    ASSERT_EQ(EncodeValue<TypeParam>(std::nextafterf(middle_float, 0)), code);
    ASSERT_EQ(EncodeValue<TypeParam>(std::nextafterf(middle_float, INFINITY)), code + 1);
  }
}

TYPED_TEST(NumberFormatTest, LargeFiniteValuesSaturate) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(EncodeValue<TypeParam>(largest), TypeParam::kMaxFinite);
  EXPECT_EQ(EncodeValue<TypeParam>(-largest), TypeParam::kMaxFinite | kSignBit<TypeParam>);
}

TYPED_TEST(NumberFormatTest, NansStayNans) {
  const uint32_t code = EncodeValue<TypeParam>(std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(IsFiniteCode<TypeParam>(code));
  EXPECT_TRUE(std::isnan(DecodeValue<TypeParam>(code)));
  for (uint32_t nan = TypeParam::kInfinity + (TypeParam::kIeee ? 1 : 0); nan < kSignBit<TypeParam>;
       ++nan) {
    ASSERT_TRUE(std::isnan(DecodeValue<TypeParam>(nan))) << nan;
  }
}

TEST(NumberFormatTest, SixteenBitFormatsKeepInfinitiesAndFp8SaturatesThem) {
  EXPECT_EQ(EncodeValue<Fp16>(INFINITY), 0x7C00);
  EXPECT_EQ(EncodeValue<Bf16>(-INFINITY), 0xFF80);
  EXPECT_EQ(EncodeValue<Fp8E5m2>(INFINITY), 0x7B);
  EXPECT_EQ(EncodeValue<Fp8E4m3>(-INFINITY), 0xFE);
  EXPECT_EQ(DecodeValue<Fp16>(0xFC00), -INFINITY);
  EXPECT_EQ(DecodeValue<Bf16>(0x7F80), INFINITY);
  EXPECT_EQ(DecodeValue<Fp8E5m2>(0x7C), INFINITY);
}

TEST(NumberFormatTest, TheDocumentedPropertiesOfTheFormatsHold) {
  EXPECT_EQ(DecodeValue<Fp16>(Fp16::kMaxFinite), 65504.0f);
  EXPECT_EQ(DecodeValue<Fp8E5m2>(Fp8E5m2::kMaxFinite), 57344.0f);
  EXPECT_EQ(DecodeValue<Fp8E4m3>(Fp8E4m3::kMaxFinite), 448.0f);
  EXPECT_EQ(DecodeValue<Fp8E5m2>(1), std::ldexp(1.0f, -16));
  EXPECT_EQ(DecodeValue<Fp8E4m3>(1), std::ldexp(1.0f, -9));
}

TEST(NumberFormatTest, Fp32KeepsEveryBit) {
  for (const uint32_t bits : {0u, 0x80000000u, 1u, 0x7F800000u, 0x7FA00001u, 0x3F800000u}) {
    EXPECT_EQ(EncodeValue<Fp32>(std::bit_cast<float>(bits)), bits);
    EXPECT_EQ(std::bit_cast<uint32_t>(DecodeValue<Fp32>(bits)), bits);
  }
}

}  // namespace
}  // namespace thinwire::kernels
