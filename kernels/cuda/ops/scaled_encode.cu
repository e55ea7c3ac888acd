#include "kernels/cuda/ops/scaled_encode.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/block/elementwise.h"
#include "kernels/cuda/block/encode_pack.h"
#include "kernels/cuda/ops/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

using Format = Fp8E4m3;

// Returns the biased exponent of the smallest valid unit (a power of two) with 448 * unit >=
// LARGEST. Because 448 = 1.75 * 2^8, a mantissa above 1.75 needs the next power of two.
__device__ uint32_t ScaleByteFor(float largest) {
  const uint32_t bits = std::bit_cast<uint32_t>(largest) & 0x7FFFFFFF;
  const int exponent = static_cast<int>(bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000 ? 1 : 0);
  return static_cast<uint32_t>(exponent < 1 ? 1 : exponent > 246 ? 246 : exponent);
}

__device__ float UnitFor(float largest) {
  return std::bit_cast<float>(ScaleByteFor(largest) << 23);
}

__global__ void ScaleByteKernel(const float* largest, std::byte* scale_byte) {
  *scale_byte = static_cast<std::byte>(ScaleByteFor(*largest));
}

struct EncodeScaledOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    StorePackUnaligned(EncodePack<Format, N>(value, 1.0f / UnitFor(*largest)), codes, i);
  }
  bool aligned() const {
    return IsAligned(values, kPackSize * sizeof(float)) && IsAligned(codes, kPackSize);
  }

  const float* values;
  const float* largest;
  std::byte* codes;
};

struct EncodeScaledFeedbackOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadSum<N>(residual + i, gradient + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    const float unit = UnitFor(*largest);
    const auto code = EncodePack<Format, N>(value, 1.0f / unit);
    StorePackUnaligned(code, codes, i);
    StorePack(EncodingError<Format, N>(value, code, unit), residual + i);
  }
  bool aligned() const {
    return IsAligned(gradient, kPackSize * sizeof(float)) &&
           IsAligned(residual, kPackSize * sizeof(float)) && IsAligned(codes, kPackSize);
  }

  const float* gradient;
  float* residual;
  const float* largest;
  std::byte* codes;
};

struct DecodeScaledOp {
  template <int N>
  __device__ Pack<uint8_t, N> Load(size_t i) const {
    return LoadPackUnaligned<uint8_t, N>(codes, i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<uint8_t, N>& code) const {
    const float unit = UnitFor(*largest);
    Pack<float, N> value;
    for (int j = 0; j < N; ++j) value.at[j] = unit * DecodeValue<Format>(code.at[j]);
    StorePack(value, out + i);
  }
  bool aligned() const {
    return IsAligned(codes, kPackSize) && IsAligned(out, kPackSize * sizeof(float));
  }

  const std::byte* codes;
  const float* largest;
  float* out;
};

Status WriteScaleByte(const ScaledCodes& out, const Stream& stream) {
  return Launch("choose a scale", ScaleByteKernel, {1, 1}, stream, out.largest, out.scale_byte);
}

}  // namespace

Status EncodeScaled(std::span<const float> values, const ScaledCodes& out, const Stream& stream) {
  RETURN_IF_CUDA_ERROR(LargestMagnitude(values, out.largest, stream));
  RETURN_IF_CUDA_ERROR(WriteScaleByte(out, stream));
  return LaunchElementwise("encode scaled", EncodeScaledOp{values.data(), out.largest, out.codes},
                           values.size(), stream);
}

Status EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                            const ScaledCodes& out, const Stream& stream) {
  RETURN_IF_CUDA_ERROR(LargestMagnitudeOfSum(gradient, residual, out.largest, stream));
  RETURN_IF_CUDA_ERROR(WriteScaleByte(out, stream));
  const EncodeScaledFeedbackOp op{gradient.data(), residual.data(), out.largest, out.codes};
  return LaunchElementwise("encode scaled with feedback", op, gradient.size(), stream);
}

Status DecodeScaledCodes(const ScaledCodes& from, std::span<float> out, const Stream& stream) {
  return LaunchElementwise("decode scaled codes",
                           DecodeScaledOp{from.codes, from.largest, out.data()}, out.size(),
                           stream);
}

}  // namespace thinwire::kernels::cuda
