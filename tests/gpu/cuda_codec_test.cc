// Compares payload parts written by CUDA kernels with those written by common/codec, byte by byte.
#include <algorithm>
#include <numeric>

#include "common/codec/dense/scaled_encode.h"
#include "common/codec/sparse/drawn_indices.h"
#include "common/codec/sparse/index_code.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/index_code.h"
#include "kernels/cuda/ops/scaled_encode.h"
#include "kernels/cuda/ops/stratified_sample.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

using CudaCodecTest = CudaTest;

// Returns COUNT distinct random indices below UNIVERSE in ascending order.
std::vector<uint32_t> RisingIndices(size_t count, size_t universe, uint32_t seed) {
  std::vector<uint32_t> all(universe), indices;
  std::iota(all.begin(), all.end(), 0u);
  std::ranges::sample(all, std::back_inserter(indices), static_cast<ptrdiff_t>(count),
                      std::mt19937(seed));
  return indices;
}

TEST_F(CudaCodecTest, EliasFanoBytesEqualThoseOfTheCpu) {
  for (const size_t universe : {1, 100, 4097, 262'144}) {
    for (const size_t count : {size_t{0}, size_t{1}, universe / 1000, universe / 3, universe}) {
      const std::vector<uint32_t> indices = RisingIndices(count, universe, 3);
      std::vector<std::byte> want(MaxIndexBytes(IndexCoder::kEliasFano, count, universe));
      EncodeIndices(IndexCoder::kEliasFano, indices, universe, want.data());
      ASSERT_EQ(ShapeOfEliasFano(count, universe).bytes(), want.size());
      DeviceArray<uint32_t> device_indices(indices, stream_);
      DeviceArray<std::byte> got(want.size(), stream_);
      Expect(EncodeEliasFano(device_indices.span(), universe, got.data(), stream_));
      ASSERT_EQ(got.Read(), want) << count << " of " << universe;
    }
  }
}

TEST_F(CudaCodecTest, DrawnIndicesEqualThoseOfTheCpu) {
  for (const size_t universe : {1, 100, 4097, 262'144}) {
    const size_t count = 1 + universe / 100;
    std::vector<uint32_t> want(count);
    DrawnIndices(99, count, universe).Next(want);
    DeviceArray<uint32_t> got(count, stream_);
    Expect(DrawIndices(99, universe, got.span(), stream_));
    ASSERT_EQ(got.Read(), want);
  }
}

TEST_F(CudaCodecTest, ScaledCodesAndResidualsEqualThoseOfTheCpu) {
  for (const size_t count : {0, 1, 2047, 4096, 50'001}) {
    // The factor by which magnitudes grow from one index to the next.
    for (const float growth : {1.0f, 1.001f}) {
      std::vector<float> gradient(count), residual(count);
      for (size_t i = 0; i < count; ++i) {
        const float size = std::pow(growth, static_cast<float>(i % 20'000));
        gradient[i] = size * std::sin(static_cast<float>(i) + 1);
        residual[i] = size * std::cos(static_cast<float>(3 * i));
      }
      DeviceArray<float> device_gradient(gradient, stream_), device_residual(residual, stream_);
      DeviceArray<float> largest(1, stream_);
      DeviceArray<std::byte> scale_byte(1, stream_), codes(count, stream_);
      const ScaledCodes out = {largest.data(), scale_byte.data(), codes.data()};
      const auto expect_same = [&](const std::vector<std::byte>& want) {
        ASSERT_EQ(scale_byte.Read()[0], want[0]);
        ASSERT_TRUE(std::ranges::equal(codes.Read(), std::span(want).subspan(1)));
      };
      std::vector<std::byte> want(1 + count);
      thinwire::EncodeScaled(gradient, want.data());
      Expect(EncodeScaled(device_gradient.span(), out, stream_));
      expect_same(want);
      thinwire::EncodeScaledFeedback(gradient, residual, want.data());
      Expect(EncodeScaledFeedback(device_gradient.span(), device_residual.span(), out, stream_));
      expect_same(want);
      ExpectSameBits(device_residual.Read(), residual);
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
