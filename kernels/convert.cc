#include "kernels/convert.h"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "kernels/format_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

static_assert(std::endian::native == std::endian::little);

template <typename Format>
typename Format::Code LoadCode(const std::byte* codes, size_t i) {
  typename Format::Code code;
  std::memcpy(&code, codes + i * sizeof(code), sizeof(code));
  return code;
}

template <typename Format>
void StoreCode(typename Format::Code code, std::byte* codes, size_t i) {
  std::memcpy(codes + i * sizeof(code), &code, sizeof(code));
}

// Prefetches the values of the next block, if the format is scaled. A scaled shard is encoded block
// by block: the first pass finds the largest magnitude of a block and thereby caches the block, and
// the second pass encodes it. Without prefetching, the memory would be idle during the second pass.
// Prefetching beyond the end of an array has no effect.
template <typename Format>
HWY_INLINE void PrefetchNextBlock(const float* values) {
  constexpr size_t kBlock = 2048;
  if constexpr (Format::kScaled) hwy::Prefetch(values + kBlock);
}

#if HWY_TARGET != HWY_SCALAR
template <typename Format>
HWY_INLINE hn::Vec<Floats> LoadUnits(const std::byte* codes, size_t i, hn::Vec<Floats> unit) {
  const auto value = LoadValues<Format>(codes + i * sizeof(typename Format::Code));
  if constexpr (Format::kScaled) return hn::Mul(value, unit);
  return value;
}

// Encodes VALUE * INVERSE, where INVERSE is 1 / unit, and stores the codes from position I of CODES
// on. Returns the decoded codes without the factor `unit`.
template <typename Format, bool kWithin = false>
HWY_INLINE hn::Vec<Floats> StoreUnits(hn::Vec<Floats> value, hn::Vec<Floats> inverse,
                                      std::byte* codes, size_t i) {
  if constexpr (Format::kScaled) value = hn::Mul(value, inverse);
  hn::Vec<Floats> rounded;
  const auto code = EncodeLanes<Format, kWithin>(value, rounded);
  StoreCodes<Format>(code, codes + i * sizeof(typename Format::Code));
  return rounded;
}
#endif

template <typename Format, bool kWithin = false>
void EncodeAll(std::span<const float> values, float unit, std::byte* codes) {
  const float inverse = 1.0f / unit;
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats df;
  const auto inverses = hn::Set(df, inverse);
  for (; i + hn::Lanes(df) <= values.size(); i += hn::Lanes(df)) {
    PrefetchNextBlock<Format>(values.data() + i);
    StoreUnits<Format, kWithin>(hn::LoadU(df, values.data() + i), inverses, codes, i);
  }
#endif
  for (; i < values.size(); ++i) {
    const float value = Format::kScaled ? values[i] * inverse : values[i];
    StoreCode<Format>(EncodeValue<Format>(value), codes, i);
  }
}

template <typename Format>
void EncodeFeedbackAll(std::span<const float> gradient, std::span<float> residual, float unit,
                       std::byte* codes) {
  const float inverse = 1.0f / unit;
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats df;
  const auto units = hn::Set(df, unit), inverses = hn::Set(df, inverse);
  for (; i + hn::Lanes(df) <= gradient.size(); i += hn::Lanes(df)) {
    float* at = residual.data() + i;
    PrefetchNextBlock<Format>(at);
    PrefetchNextBlock<Format>(gradient.data() + i);
    const auto value = hn::Add(hn::LoadU(df, at), hn::LoadU(df, gradient.data() + i));
    auto sent = StoreUnits<Format>(value, inverses, codes, i);
    if constexpr (Format::kScaled) sent = hn::Mul(sent, units);
    hn::StoreU(hn::Sub(value, sent), df, at);
  }
#endif
  for (; i < gradient.size(); ++i) {
    const float value = residual[i] + gradient[i];
    const auto code = EncodeValue<Format>(Format::kScaled ? value * inverse : value);
    StoreCode<Format>(code, codes, i);
    residual[i] = value - unit * DecodeValue<Format>(code);
  }
}

template <typename Format>
void DecodeAll(const std::byte* codes, float unit, std::span<float> out) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats df;
  const auto units = hn::Set(df, unit);
  for (; i + hn::Lanes(df) <= out.size(); i += hn::Lanes(df)) {
    hn::StoreU(LoadUnits<Format>(codes, i, units), df, out.data() + i);
  }
#endif
  for (; i < out.size(); ++i) out[i] = unit * DecodeValue<Format>(LoadCode<Format>(codes, i));
}

template <typename Format>
void DecodeScaledAll(const std::byte* codes, float unit, float scale, std::span<float> out) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats df;
  const auto units = hn::Set(df, unit), scales = hn::Set(df, scale);
  for (; i + hn::Lanes(df) <= out.size(); i += hn::Lanes(df)) {
    hn::StoreU(hn::Mul(scales, LoadUnits<Format>(codes, i, units)), df, out.data() + i);
  }
#endif
  for (; i < out.size(); ++i) {
    out[i] = scale * (unit * DecodeValue<Format>(LoadCode<Format>(codes, i)));
  }
}

template <typename Format>
void DecodeAddAll(const std::byte* codes, float unit, float scale, std::span<float> sum) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Floats df;
  const auto units = hn::Set(df, unit), scales = hn::Set(df, scale);
  for (; i + hn::Lanes(df) <= sum.size(); i += hn::Lanes(df)) {
    const auto value = hn::Mul(scales, LoadUnits<Format>(codes, i, units));
    hn::StoreU(hn::Add(hn::LoadU(df, sum.data() + i), value), df, sum.data() + i);
  }
#endif
  for (; i < sum.size(); ++i) {
    sum[i] += scale * (unit * DecodeValue<Format>(LoadCode<Format>(codes, i)));
  }
}

// Defines one function per format and operation, because Highway cannot dispatch function
// templates.
#define THINWIRE_CONVERT(Format)                                                                  \
  void Encode##Format(std::span<const float> values, float unit, std::byte* codes) {              \
    EncodeAll<Format>(values, unit, codes);                                                       \
  }                                                                                               \
  void EncodeFeedback##Format(std::span<const float> gradient, std::span<float> residual,         \
                              float unit, std::byte* codes) {                                     \
    EncodeFeedbackAll<Format>(gradient, residual, unit, codes);                                   \
  }                                                                                               \
  void Decode##Format(const std::byte* codes, float unit, std::span<float> out) {                 \
    DecodeAll<Format>(codes, unit, out);                                                          \
  }                                                                                               \
  void DecodeScaled##Format(const std::byte* codes, float unit, float scale,                      \
                            std::span<float> out) {                                               \
    DecodeScaledAll<Format>(codes, unit, scale, out);                                             \
  }                                                                                               \
  void DecodeAdd##Format(const std::byte* codes, float unit, float scale, std::span<float> sum) { \
    DecodeAddAll<Format>(codes, unit, scale, sum);                                                \
  }

THINWIRE_CONVERT(Fp32)
THINWIRE_CONVERT(Fp16)
THINWIRE_CONVERT(Bf16)
THINWIRE_CONVERT(Fp8E5m2)
THINWIRE_CONVERT(Fp8E4m3)
#undef THINWIRE_CONVERT

void EncodeWithinFp8E4m3(std::span<const float> values, float unit, std::byte* codes) {
  EncodeAll<Fp8E4m3, /*kWithin=*/true>(values, unit, codes);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

#define THINWIRE_CONVERT(Format)                                                                  \
  HWY_EXPORT(Encode##Format);                                                                     \
  HWY_EXPORT(EncodeFeedback##Format);                                                             \
  HWY_EXPORT(Decode##Format);                                                                     \
  HWY_EXPORT(DecodeScaled##Format);                                                               \
  HWY_EXPORT(DecodeAdd##Format);                                                                  \
  template <>                                                                                     \
  void Encode<Format>(std::span<const float> values, float unit, std::byte* codes) {              \
    HWY_DYNAMIC_DISPATCH(Encode##Format)(values, unit, codes);                                    \
  }                                                                                               \
  template <>                                                                                     \
  void EncodeFeedback<Format>(std::span<const float> gradient, std::span<float> residual,         \
                              float unit, std::byte* codes) {                                     \
    HWY_DYNAMIC_DISPATCH(EncodeFeedback##Format)(gradient, residual, unit, codes);                \
  }                                                                                               \
  template <>                                                                                     \
  void Decode<Format>(const std::byte* codes, float unit, std::span<float> out) {                 \
    HWY_DYNAMIC_DISPATCH(Decode##Format)(codes, unit, out);                                       \
  }                                                                                               \
  template <>                                                                                     \
  void DecodeScaled<Format>(const std::byte* codes, float unit, float scale,                      \
                            std::span<float> out) {                                               \
    HWY_DYNAMIC_DISPATCH(DecodeScaled##Format)(codes, unit, scale, out);                          \
  }                                                                                               \
  template <>                                                                                     \
  void DecodeAdd<Format>(const std::byte* codes, float unit, float scale, std::span<float> sum) { \
    HWY_DYNAMIC_DISPATCH(DecodeAdd##Format)(codes, unit, scale, sum);                             \
  }

THINWIRE_CONVERT(Fp32)
THINWIRE_CONVERT(Fp16)
THINWIRE_CONVERT(Bf16)
THINWIRE_CONVERT(Fp8E5m2)
THINWIRE_CONVERT(Fp8E4m3)
#undef THINWIRE_CONVERT

HWY_EXPORT(EncodeWithinFp8E4m3);
template <>
void EncodeWithin<Fp8E4m3>(std::span<const float> values, float unit, std::byte* codes) {
  HWY_DYNAMIC_DISPATCH(EncodeWithinFp8E4m3)(values, unit, codes);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
