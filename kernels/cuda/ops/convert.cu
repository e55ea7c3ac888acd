#include "kernels/cuda/ops/convert.h"

#include "kernels/cuda/block/elementwise.h"
#include "kernels/cuda/block/encode_pack.h"

namespace thinwire::kernels::cuda {
namespace {

template <typename Format>
struct Codes {
  using Code = typename Format::Code;

  template <int N>
  __device__ Pack<float, N> Load(size_t i, float unit) const {
    const Pack<Code, N> codes = LoadPackUnaligned<Code, N>(bytes, i);
    Pack<float, N> values;
    for (int j = 0; j < N; ++j) values.at[j] = unit * DecodeValue<Format>(codes.at[j]);
    return values;
  }
  bool aligned() const { return IsAligned(bytes, kPackSize * sizeof(Code)); }

  const std::byte* bytes;
};

template <typename Format>
struct EncodeOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    StorePackUnaligned(EncodePack<Format, N>(value, inverse), codes, i);
  }
  bool aligned() const {
    return IsAligned(values, kPackSize * sizeof(float)) &&
           IsAligned(codes, kPackSize * sizeof(typename Format::Code));
  }

  const float* values;
  float inverse;
  std::byte* codes;
};

template <typename Format>
struct EncodeFeedbackOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadSum<N>(residual + i, gradient + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    const auto code = EncodePack<Format, N>(value, inverse);
    StorePackUnaligned(code, codes, i);
    StorePack(EncodingError<Format, N>(value, code, unit), residual + i);
  }
  bool aligned() const {
    return IsAligned(gradient, kPackSize * sizeof(float)) &&
           IsAligned(residual, kPackSize * sizeof(float)) &&
           IsAligned(codes, kPackSize * sizeof(typename Format::Code));
  }

  const float* gradient;
  float* residual;
  float unit;
  float inverse;
  std::byte* codes;
};

template <typename Format>
struct DecodeOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return codes.template Load<N>(i, unit);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    StorePack(value, out + i);
  }
  bool aligned() const { return codes.aligned() && IsAligned(out, kPackSize * sizeof(float)); }

  Codes<Format> codes;
  float unit;
  float* out;
};

template <typename Format>
struct DecodeScaledOp : DecodeOp<Format> {
  template <int N>
  __device__ void Store(size_t i, Pack<float, N> value) const {
    for (int j = 0; j < N; ++j) value.at[j] = scale * value.at[j];
    StorePack(value, this->out + i);
  }

  float scale;
};

template <int N>
struct Addition {
  Pack<float, N> value, sum;
};

template <typename Format>
struct DecodeAddOp : DecodeOp<Format> {
  template <int N>
  __device__ Addition<N> Load(size_t i) const {
    return {this->codes.template Load<N>(i, this->unit), LoadPack<float, N>(this->out + i)};
  }
  template <int N>
  __device__ void Store(size_t i, Addition<N> both) const {
    for (int j = 0; j < N; ++j) both.sum.at[j] += scale * both.value.at[j];
    StorePack(both.sum, this->out + i);
  }

  float scale;
};

}  // namespace

template <typename Format>
Status Encode(std::span<const float> values, float unit, std::byte* codes, const Stream& stream) {
  return LaunchElementwise("encode", EncodeOp<Format>{values.data(), 1.0f / unit, codes},
                           values.size(), stream);
}

template <typename Format>
Status EncodeFeedback(std::span<const float> gradient, std::span<float> residual, float unit,
                      std::byte* codes, const Stream& stream) {
  const EncodeFeedbackOp<Format> op{gradient.data(), residual.data(), unit, 1.0f / unit, codes};
  return LaunchElementwise("encode with feedback", op, gradient.size(), stream);
}

template <typename Format>
Status Decode(const std::byte* codes, float unit, std::span<float> out, const Stream& stream) {
  return LaunchElementwise("decode", DecodeOp<Format>{{codes}, unit, out.data()}, out.size(),
                           stream);
}

template <typename Format>
Status DecodeScaled(const std::byte* codes, float unit, float scale, std::span<float> out,
                    const Stream& stream) {
  const DecodeScaledOp<Format> op{{{codes}, unit, out.data()}, scale};
  return LaunchElementwise("decode and scale", op, out.size(), stream);
}

template <typename Format>
Status DecodeAdd(const std::byte* codes, float unit, float scale, std::span<float> sum,
                 const Stream& stream) {
  const DecodeAddOp<Format> op{{{codes}, unit, sum.data()}, scale};
  return LaunchElementwise("decode and add", op, sum.size(), stream);
}

#define THINWIRE_CONVERT(Format)                                                            \
  template Status Encode<Format>(std::span<const float>, float, std::byte*, const Stream&); \
  template Status EncodeFeedback<Format>(std::span<const float>, std::span<float>, float,   \
                                         std::byte*, const Stream&);                        \
  template Status Decode<Format>(const std::byte*, float, std::span<float>, const Stream&); \
  template Status DecodeScaled<Format>(const std::byte*, float, float, std::span<float>,    \
                                       const Stream&);                                      \
  template Status DecodeAdd<Format>(const std::byte*, float, float, std::span<float>,       \
                                    const Stream&);

THINWIRE_CONVERT(Fp32)
THINWIRE_CONVERT(Fp16)
THINWIRE_CONVERT(Bf16)
THINWIRE_CONVERT(Fp8E5m2)
THINWIRE_CONVERT(Fp8E4m3)
#undef THINWIRE_CONVERT

}  // namespace thinwire::kernels::cuda
