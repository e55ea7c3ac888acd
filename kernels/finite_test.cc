#include "kernels/finite.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

template <typename Format>
class FiniteTest : public testing::Test {};
using Formats = testing::Types<Fp32, Fp16, Bf16, Fp8E5m2, Fp8E4m3>;
TYPED_TEST_SUITE(FiniteTest, Formats);

// Returns COUNT codes with the largest finite magnitude and both signs. The codes begin at byte 1
// of the result, an odd address.
template <typename Format>
std::vector<std::byte> LargestCodes(size_t count) {
  std::vector<std::byte> bytes(1 + count * sizeof(typename Format::Code));
  for (size_t i = 0; i < count; ++i) {
    const auto code =
        static_cast<typename Format::Code>(Format::kMaxFinite | (i % 2 ? kSignBit<Format> : 0));
    std::memcpy(bytes.data() + 1 + i * sizeof(code), &code, sizeof(code));
  }
  return bytes;
}

template <typename Format>
bool AllFiniteCodes(const std::vector<std::byte>& bytes, size_t count) {
  return AllCodesWithin<Format>(bytes.data() + 1, count, Format::kMaxFinite);
}

TYPED_TEST(FiniteTest, TheLargestFiniteCodesPass) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 200; ++count) {
      ASSERT_TRUE(AllFiniteCodes<TypeParam>(LargestCodes<TypeParam>(count), count));
    }
  });
}

TYPED_TEST(FiniteTest, FindsOneNonFiniteCodeAnywhere) {
  using Code = typename TypeParam::Code;
  OnEveryTarget([] {
    for (const size_t count : {1, 3, 64, 65, 131}) {
      for (size_t bad = 0; bad < count; ++bad) {
        for (const uint32_t code :
             {TypeParam::kInfinity, TypeParam::kNan, TypeParam::kInfinity | kSignBit<TypeParam>}) {
          auto bytes = LargestCodes<TypeParam>(count);
          const auto planted = static_cast<Code>(code);
          std::memcpy(bytes.data() + 1 + bad * sizeof(Code), &planted, sizeof(Code));
          ASSERT_FALSE(AllFiniteCodes<TypeParam>(bytes, count)) << bad << " of " << count;
        }
      }
    }
  });
}

TYPED_TEST(FiniteTest, AnyCodeCanBeTheBound) {
  using Code = typename TypeParam::Code;
  OnEveryTarget([] {
    for (const size_t count : {1, 64, 131}) {
      const auto bytes = LargestCodes<TypeParam>(count);
      const auto below = static_cast<Code>(TypeParam::kMaxFinite - 1);
      ASSERT_FALSE(AllCodesWithin<TypeParam>(bytes.data() + 1, count, below));
      const std::vector<std::byte> zeros(1 + count * sizeof(Code));
      ASSERT_TRUE(AllCodesWithin<TypeParam>(zeros.data() + 1, count, Code{0}));
    }
  });
}

TEST(FiniteTest, AllFiniteChecksFloats) {
  std::vector<float> values(100, 3e38f);
  EXPECT_TRUE(AllFinite(values));
  values[61] = -INFINITY;
  EXPECT_FALSE(AllFinite(values));
  EXPECT_TRUE(AllFinite(std::span(values).first(61)));
}

}  // namespace
}  // namespace thinwire::kernels
