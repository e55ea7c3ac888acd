#include "kernels/cuda/ops/scaled_encode.h"

#include "kernels/convert.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

// Returns the smallest power of two among the valid units with 448 * unit >= LARGEST.
float UnitFor(float largest) {
  int exponent = -126;
  while (exponent < 119 && std::ldexp(448.0f, exponent) < largest) ++exponent;
  return std::ldexp(1.0f, exponent);
}

std::byte ByteOf(float unit) { return static_cast<std::byte>(std::bit_cast<uint32_t>(unit) >> 23); }

class ScaledEncodeTwinTest : public CudaTest {
 protected:
  // Calls CHECK for all arrays of ForEachCase(), and for arrays whose largest magnitudes cover all
  // exponents of a float.
  template <typename Check>
  void ForEachScale(const Check& check) {
    ForEachCase(check);
    for (int exponent = -149; exponent < 128; ++exponent) {
      for (const float mantissa : {1.0f, 1.75f, 1.7500001f}) {
        check({std::ldexp(mantissa, exponent), -std::ldexp(1.0f, exponent - 3)}, 1u);
      }
    }
  }
};

TEST_F(ScaledEncodeTwinTest, ChoosesTheScaleEncodesAndDecodesLikeTheCpu) {
  ForEachScale([&](const std::vector<float>& values, uint32_t) {
    const float unit = UnitFor(kernels::LargestMagnitude(values));
    std::vector<std::byte> want(values.size());
    kernels::Encode<Fp8E4m3>(values, unit, want.data());
    DeviceArray<float> device_values(values, stream_), largest(1, stream_);
    DeviceArray<std::byte> scale_byte(1, stream_), codes(values.size(), stream_);
    const ScaledCodes scaled = {largest.data(), scale_byte.data(), codes.data()};
    Expect(EncodeScaled(device_values.span(), scaled, stream_));
    Expect(DecodeScaledCodes(scaled, device_values.span(), stream_));
    const float found = largest.Read()[0];
    if (!std::isfinite(found)) return;  // not tested: callers reject gradients that are not finite
    ASSERT_EQ(scale_byte.Read()[0], ByteOf(unit)) << found;
    ASSERT_EQ(codes.Read(), want);
    std::vector<float> decoded(values.size());
    kernels::Decode<Fp8E4m3>(want.data(), unit, decoded);
    ExpectSameBits(device_values.Read(), decoded);
  });
}

TEST_F(ScaledEncodeTwinTest, FeedbackLeavesTheEncodingError) {
  ForEachScale([&](const std::vector<float>& gradient, uint32_t seed) {
    std::vector<float> residual = ValuesOf(Kind::kRandom, gradient.size(), seed + 1000);
    const float found = kernels::LargestMagnitudeOfSum(gradient, residual);
    if (!std::isfinite(found)) return;
    DeviceArray<float> device_gradient(gradient, stream_), device_residual(residual, stream_);
    DeviceArray<float> largest(1, stream_);
    DeviceArray<std::byte> scale_byte(1, stream_), codes(gradient.size(), stream_);
    std::vector<std::byte> want(gradient.size());
    kernels::EncodeFeedback<Fp8E4m3>(gradient, residual, UnitFor(found), want.data());
    Expect(EncodeScaledFeedback(device_gradient.span(), device_residual.span(),
                                {largest.data(), scale_byte.data(), codes.data()}, stream_));
    ASSERT_EQ(scale_byte.Read()[0], ByteOf(UnitFor(found)));
    ASSERT_EQ(codes.Read(), want);
    ExpectSameBits(device_residual.Read(), residual);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
