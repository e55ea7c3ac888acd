#include "kernels/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

// Returns COUNT values of all magnitudes, mixed with zeros, infinities, NaNs and other special
// values.
std::vector<float> Values(size_t count, uint32_t seed) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      Limits::denorm_min(),
                                      -Limits::min(),
                                      Limits::max(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN(),
                                      65504.0f,
                                      65520.0f,
                                      -57344.0f,
                                      464.0f};
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = random() % 8 == 0 ? special[random() % special.size()]
                              : std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (random() % 2 == 0) value = std::ldexp(static_cast<float>(random() % 2001) - 1000, -12);
  }
  return values;
}

// Expects that each pair of values has equal bits or is a pair of NaNs.
void ExpectSame(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "value " << i << " of " << got.size() << ": " << got[i] << " and " << want[i];
  }
}

template <typename Format>
class ConvertTest : public testing::Test {
 protected:
  using Code = typename Format::Code;
  static constexpr float kUnit = Format::kScaled ? 0.125f : 1.0f;

  // Calls check(values, offset) with every instruction set for arrays of many lengths. CHECK places
  // the codes OFFSET bytes after an aligned address, so that some codes are unaligned.
  void OnManyArrays(const std::function<void(const std::vector<float>&, size_t)>& check) {
    OnEveryTarget([&] {
      for (size_t count = 0; count < 70; ++count) check(Values(count, count), count % 5);
      check(Values(10'000, 77), 1);
    });
  }

  static std::vector<std::byte> EncodedOneByOne(const std::vector<float>& values, size_t offset) {
    std::vector<std::byte> bytes(offset + values.size() * sizeof(Code));
    for (size_t i = 0; i < values.size(); ++i) {
      const Code code = EncodeValue<Format>(values[i] * (1 / kUnit));
      std::memcpy(bytes.data() + offset + i * sizeof(Code), &code, sizeof(Code));
    }
    return bytes;
  }

  static float ValueAt(const std::vector<std::byte>& bytes, size_t offset, size_t i) {
    Code code;
    std::memcpy(&code, bytes.data() + offset + i * sizeof(Code), sizeof(Code));
    return kUnit * DecodeValue<Format>(code);
  }
};

using Formats = testing::Types<Fp32, Fp16, Bf16, Fp8E5m2, Fp8E4m3>;
TYPED_TEST_SUITE(ConvertTest, Formats);

TYPED_TEST(ConvertTest, EncodeEqualsTheScalarFormula) {
  this->OnManyArrays([](const std::vector<float>& values, size_t offset) {
    const auto want = TestFixture::EncodedOneByOne(values, offset);
    std::vector<std::byte> got(want.size());
    Encode<TypeParam>(values, TestFixture::kUnit, got.data() + offset);
    ASSERT_EQ(got, want);
  });
}

using Fp8E4m3Test = ConvertTest<Fp8E4m3>;

TEST_F(Fp8E4m3Test, EncodeWithinEqualsEncode) {
  constexpr float kMost = kUnit * DecodeValue<Fp8E4m3>(Fp8E4m3::kMaxFinite);
  OnManyArrays([&](std::vector<float> values, size_t offset) {
    for (float& value : values) {
      value = std::isnan(value) ? -kMost : std::clamp(value, -kMost, kMost);
    }
    std::vector<std::byte> bytes(offset + values.size());
    EncodeWithin<Fp8E4m3>(values, kUnit, bytes.data() + offset);
    ASSERT_EQ(bytes, EncodedOneByOne(values, offset));
  });
}

TYPED_TEST(ConvertTest, EncodeFeedbackLeavesTheEncodingError) {
  this->OnManyArrays([](const std::vector<float>& gradient, size_t offset) {
    const std::vector<float> before = Values(gradient.size(), 1 + gradient.size());
    std::vector<float> sums = before;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += gradient[i];
    const auto want = TestFixture::EncodedOneByOne(sums, offset);
    std::vector<float> lost = sums;
    for (size_t i = 0; i < lost.size(); ++i) lost[i] -= TestFixture::ValueAt(want, offset, i);

    std::vector<std::byte> got(want.size());
    std::vector<float> residual = before;
    EncodeFeedback<TypeParam>(gradient, residual, TestFixture::kUnit, got.data() + offset);
    // The loop skips sums that are NaNs, because the sign of a NaN depends on the order of the
    // operands.
    for (size_t i = 0; i < sums.size(); ++i) {
      if (std::isnan(sums[i])) continue;
      ASSERT_EQ(TestFixture::ValueAt(got, offset, i), TestFixture::ValueAt(want, offset, i));
    }
    ExpectSame(residual, lost);
  });
}

TYPED_TEST(ConvertTest, DecodeEqualsTheScalarFormula) {
  this->OnManyArrays([](const std::vector<float>& values, size_t offset) {
    const auto bytes = TestFixture::EncodedOneByOne(values, offset);
    std::vector<float> want(values.size());
    for (size_t i = 0; i < want.size(); ++i) want[i] = TestFixture::ValueAt(bytes, offset, i);
    std::vector<float> got(values.size(), 9.0f);
    Decode<TypeParam>(bytes.data() + offset, TestFixture::kUnit, got);
    ExpectSame(got, want);
  });
}

TYPED_TEST(ConvertTest, DecodeScaledEqualsTheScalarFormula) {
  this->OnManyArrays([](const std::vector<float>& values, size_t offset) {
    const auto bytes = TestFixture::EncodedOneByOne(values, offset);
    std::vector<float> want(values.size());
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] = 0.3f * TestFixture::ValueAt(bytes, offset, i);
    }
    std::vector<float> got(values.size(), 9.0f);
    DecodeScaled<TypeParam>(bytes.data() + offset, TestFixture::kUnit, 0.3f, got);
    ExpectSame(got, want);
  });
}

TYPED_TEST(ConvertTest, DecodeAddEqualsTheScalarFormula) {
  this->OnManyArrays([](const std::vector<float>& values, size_t offset) {
    const auto bytes = TestFixture::EncodedOneByOne(values, offset);
    std::vector<float> got = Values(values.size(), 5);
    std::vector<float> want = got;
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] += 0.3f * TestFixture::ValueAt(bytes, offset, i);
    }
    DecodeAdd<TypeParam>(bytes.data() + offset, TestFixture::kUnit, 0.3f, got);
    ExpectSame(got, want);
  });
}

TYPED_TEST(ConvertTest, DecodesEveryCode) {
  if (sizeof(typename TypeParam::Code) == 4)
    GTEST_SKIP() << "fp32 stores floats unchanged; 2^32 codes are too many";
  std::vector<typename TypeParam::Code> codes(2 * kSignBit<TypeParam>);
  std::vector<float> want(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<typename TypeParam::Code>(i);
    want[i] = TestFixture::kUnit * DecodeValue<TypeParam>(codes[i]);
  }
  OnEveryTarget([&] {
    std::vector<float> got(codes.size());
    Decode<TypeParam>(std::as_bytes(std::span(codes)).data(), TestFixture::kUnit, got);
    ExpectSame(got, want);
  });
}

}  // namespace
}  // namespace thinwire::kernels
