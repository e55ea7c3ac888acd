#include "kernels/cuda/convert.h"

#include "kernels/cuda/encode_few.h"
#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

template <typename Format>
struct Codes {
  using Code = typename Format::Code;

  template <int N>
  __device__ Few<float, N> Load(size_t i, float unit) const {
    const Few<Code, N> codes = LoadFewBytes<Code, N>(bytes, i);
    Few<float, N> values;
    for (int j = 0; j < N; ++j) values.at[j] = unit * DecodeValue<Format>(codes.at[j]);
    return values;
  }
  bool aligned() const { return BeginsAt(bytes, kWidth * sizeof(Code)); }

  const std::byte* bytes;
};

template <typename Format>
struct EncodeOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadFew<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& value) const {
    StoreFewBytes(EncodeFew<Format, N>(value, inverse), codes, i);
  }
  bool aligned() const {
    return BeginsAt(values, kWidth * sizeof(float)) &&
           BeginsAt(codes, kWidth * sizeof(typename Format::Code));
  }

  const float* values;
  float inverse;
  std::byte* codes;
};

template <typename Format>
struct EncodeFeedbackOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadSum<N>(residual + i, gradient + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& value) const {
    const auto code = EncodeFew<Format, N>(value, inverse);
    StoreFewBytes(code, codes, i);
    StoreFew(LostFew<Format, N>(value, code, unit), residual + i);
  }
  bool aligned() const {
    return BeginsAt(gradient, kWidth * sizeof(float)) &&
           BeginsAt(residual, kWidth * sizeof(float)) &&
           BeginsAt(codes, kWidth * sizeof(typename Format::Code));
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
  __device__ Few<float, N> Load(size_t i) const {
    return codes.template Load<N>(i, unit);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& value) const {
    StoreFew(value, out + i);
  }
  bool aligned() const { return codes.aligned() && BeginsAt(out, kWidth * sizeof(float)); }

  Codes<Format> codes;
  float unit;
  float* out;
};

template <typename Format>
struct DecodeScaledOp : DecodeOp<Format> {
  template <int N>
  __device__ void Store(size_t i, Few<float, N> value) const {
    for (int j = 0; j < N; ++j) value.at[j] = scale * value.at[j];
    StoreFew(value, this->out + i);
  }

  float scale;
};

// What is added, and to what.
template <int N>
struct Addition {
  Few<float, N> value, sum;
};

template <typename Format>
struct DecodeAddOp : DecodeOp<Format> {
  template <int N>
  __device__ Addition<N> Load(size_t i) const {
    return {this->codes.template Load<N>(i, this->unit), LoadFew<float, N>(this->out + i)};
  }
  template <int N>
  __device__ void Store(size_t i, Addition<N> both) const {
    for (int j = 0; j < N; ++j) both.sum.at[j] += scale * both.value.at[j];
    StoreFew(both.sum, this->out + i);
  }

  float scale;
};

}  // namespace

template <typename Format>
Status Encode(std::span<const float> values, float unit, std::byte* codes, const Stream& stream) {
  return ForAll("encode", EncodeOp<Format>{values.data(), 1.0f / unit, codes}, values.size(),
                stream);
}

template <typename Format>
Status EncodeFeedback(std::span<const float> gradient, std::span<float> residual, float unit,
                      std::byte* codes, const Stream& stream) {
  const EncodeFeedbackOp<Format> op{gradient.data(), residual.data(), unit, 1.0f / unit, codes};
  return ForAll("encode with feedback", op, gradient.size(), stream);
}

template <typename Format>
Status Decode(const std::byte* codes, float unit, std::span<float> out, const Stream& stream) {
  return ForAll("decode", DecodeOp<Format>{{codes}, unit, out.data()}, out.size(), stream);
}

template <typename Format>
Status DecodeScaled(const std::byte* codes, float unit, float scale, std::span<float> out,
                    const Stream& stream) {
  const DecodeScaledOp<Format> op{{{codes}, unit, out.data()}, scale};
  return ForAll("decode and scale", op, out.size(), stream);
}

template <typename Format>
Status DecodeAdd(const std::byte* codes, float unit, float scale, std::span<float> sum,
                 const Stream& stream) {
  const DecodeAddOp<Format> op{{{codes}, unit, sum.data()}, scale};
  return ForAll("decode and add", op, sum.size(), stream);
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
