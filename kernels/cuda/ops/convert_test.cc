#include "kernels/cuda/ops/convert.h"

#include "kernels/convert.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

template <typename Format>
class ConvertTwinTest : public CudaTest {
 protected:
  using Code = typename Format::Code;
  static constexpr float kUnit = Format::kScaled ? 0.125f : 1.0f;
  static constexpr float kScale = 0.3f;

  static std::vector<std::byte> EncodedOnCpu(const std::vector<float>& values) {
    std::vector<std::byte> codes(values.size() * sizeof(Code));
    kernels::Encode<Format>(values, kUnit, codes.data());
    return codes;
  }

  // Expects equal codes. Two codes count as equal if both stand for NaNs.
  static void ExpectSameCodes(const std::vector<std::byte>& got,
                              const std::vector<std::byte>& want) {
    if (got == want) return;
    ASSERT_EQ(got.size(), want.size());
    std::vector<float> got_values(got.size() / sizeof(Code)), want_values(got_values.size());
    kernels::Decode<Format>(got.data(), 1.0f, got_values);
    kernels::Decode<Format>(want.data(), 1.0f, want_values);
    ExpectSameBits(got_values, want_values);
  }

  // Calls CHECK twice for every array of ForEachCase(): for codes that begin at a multiple of 256
  // bytes, and for codes that begin one byte after such an address.
  template <typename Check>
  void ForEachCaseAndAddress(const Check& check) {
    for (const size_t offset : {0, 1}) {
      ForEachCase(
          [&](const std::vector<float>& values, uint32_t seed) { check(values, offset, seed); });
    }
  }

  // Expects that the decoders CPU and DEVICE compute equal results from equal codes and equal
  // initial values.
  template <typename Cpu, typename Device>
  void ExpectSameDecoding(const Cpu& cpu, const Device& device) {
    ForEachCaseAndAddress([&](const std::vector<float>& values, size_t offset, uint32_t seed) {
      const std::vector<std::byte> codes = EncodedOnCpu(values);
      std::vector<float> want = ValuesOf(Kind::kRandom, values.size(), seed + 1000);
      DeviceArray<std::byte> device_codes(codes, this->stream_, offset);
      DeviceArray<float> got(want, this->stream_);
      cpu(codes.data(), std::span(want));
      this->Expect(device(device_codes.data(), got.span()));
      ExpectSameBits(got.Read(), want);
    });
  }
};

using Formats = testing::Types<Fp32, Fp16, Bf16, Fp8E5m2, Fp8E4m3>;
TYPED_TEST_SUITE(ConvertTwinTest, Formats);

TYPED_TEST(ConvertTwinTest, EncodeEqualsTheCpus) {
  this->ForEachCaseAndAddress([&](const std::vector<float>& values, size_t offset, uint32_t) {
    const auto want = TestFixture::EncodedOnCpu(values);
    DeviceArray<float> device_values(values, this->stream_);
    DeviceArray<std::byte> got(want.size(), this->stream_, offset);
    this->Expect(
        Encode<TypeParam>(device_values.span(), TestFixture::kUnit, got.data(), this->stream_));
    TestFixture::ExpectSameCodes(got.Read(), want);
  });
}

TYPED_TEST(ConvertTwinTest, EncodeFeedbackEqualsTheCpus) {
  this->ForEachCaseAndAddress(
      [&](const std::vector<float>& gradient, size_t offset, uint32_t seed) {
        std::vector<float> residual = ValuesOf(Kind::kRandom, gradient.size(), seed + 1000);
        DeviceArray<float> device_gradient(gradient, this->stream_);
        DeviceArray<float> device_residual(residual, this->stream_);
        std::vector<std::byte> want(gradient.size() * sizeof(typename TypeParam::Code));
        DeviceArray<std::byte> got(want.size(), this->stream_, offset);
        kernels::EncodeFeedback<TypeParam>(gradient, residual, TestFixture::kUnit, want.data());
        this->Expect(EncodeFeedback<TypeParam>(device_gradient.span(), device_residual.span(),
                                               TestFixture::kUnit, got.data(), this->stream_));
        TestFixture::ExpectSameCodes(got.Read(), want);
        ExpectSameBits(device_residual.Read(), residual);
      });
}

TYPED_TEST(ConvertTwinTest, DecodeEqualsTheCpus) {
  this->ExpectSameDecoding(
      [](const std::byte* codes, std::span<float> out) {
        kernels::Decode<TypeParam>(codes, TestFixture::kUnit, out);
      },
      [&](const std::byte* codes, std::span<float> out) {
        return Decode<TypeParam>(codes, TestFixture::kUnit, out, this->stream_);
      });
}

TYPED_TEST(ConvertTwinTest, DecodeScaledEqualsTheCpus) {
  this->ExpectSameDecoding(
      [](const std::byte* codes, std::span<float> out) {
        kernels::DecodeScaled<TypeParam>(codes, TestFixture::kUnit, TestFixture::kScale, out);
      },
      [&](const std::byte* codes, std::span<float> out) {
        return DecodeScaled<TypeParam>(codes, TestFixture::kUnit, TestFixture::kScale, out,
                                       this->stream_);
      });
}

TYPED_TEST(ConvertTwinTest, DecodeAddEqualsTheCpus) {
  this->ExpectSameDecoding(
      [](const std::byte* codes, std::span<float> sum) {
        kernels::DecodeAdd<TypeParam>(codes, TestFixture::kUnit, TestFixture::kScale, sum);
      },
      [&](const std::byte* codes, std::span<float> sum) {
        return DecodeAdd<TypeParam>(codes, TestFixture::kUnit, TestFixture::kScale, sum,
                                    this->stream_);
      });
}

// Encodes floats with every value of the upper two bytes and six values of the lower two bytes. The
// floats include ties (midpoints between two codes) and their neighbors, in every format of at most
// 16 bits.
TYPED_TEST(ConvertTwinTest, EncodesTiesAndTheirNeighborsLikeTheCpu) {
  std::vector<float> values;
  for (const uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
    for (uint32_t upper = 0; upper < 0x10000; ++upper) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  DeviceArray<float> device_values(values, this->stream_);
  const auto want = TestFixture::EncodedOnCpu(values);
  DeviceArray<std::byte> got(want.size(), this->stream_);
  this->Expect(
      Encode<TypeParam>(device_values.span(), TestFixture::kUnit, got.data(), this->stream_));
  TestFixture::ExpectSameCodes(got.Read(), want);
}

TYPED_TEST(ConvertTwinTest, DecodesEveryCodeLikeTheCpu) {
  if (sizeof(typename TypeParam::Code) == 4)
    GTEST_SKIP() << "fp32 stores floats unchanged; 2^32 codes are too many";
  std::vector<typename TypeParam::Code> codes(2 * kSignBit<TypeParam>);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<typename TypeParam::Code>(i);
  std::vector<float> want(codes.size());
  kernels::Decode<TypeParam>(std::as_bytes(std::span(codes)).data(), TestFixture::kUnit, want);
  DeviceArray<typename TypeParam::Code> device_codes(codes, this->stream_);
  DeviceArray<float> got(codes.size(), this->stream_);
  this->Expect(
      Decode<TypeParam>(device_codes.bytes(), TestFixture::kUnit, got.span(), this->stream_));
  ExpectSameBits(got.Read(), want);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
