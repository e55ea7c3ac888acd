#include "kernels/cuda/codes.h"

#include <bit>

#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ uint8_t WithSign(uint32_t count, float value, int bits) {
  return static_cast<uint8_t>(count | std::bit_cast<uint32_t>(value) >> 31 << (bits - 1));
}

// trunc(place), at most MOST and at least 0, which is a NaN's, too.
__device__ uint32_t Truncated(float place, float most) {
  const float positive = place > 0.0f ? place : 0.0f;
  return static_cast<uint32_t>(positive < most ? positive : most);
}

// A Rule gives one value its code.
template <typename Rule>
struct CodesOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadFew<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& value) const {
    Few<uint8_t, N> few;
    for (int j = 0; j < N; ++j) few.at[j] = rule(value.at[j]);
    StoreFew(few, codes + i);
  }
  bool aligned() const {
    return BeginsAt(values, kWidth * sizeof(float)) && BeginsAt(codes, kWidth);
  }

  const float* values;
  uint8_t* codes;
  Rule rule;
};

template <typename Rule>
Status GiveCodes(const char* attempt, std::span<const float> values, std::span<uint8_t> codes,
                 const Rule& rule, const Stream& stream) {
  return ForAll(attempt, CodesOp<Rule>{values.data(), codes.data(), rule}, values.size(), stream);
}

// The thresholds, 2^(bits-1) - 1 of them, are searched in halves.
struct MagnitudeRule {
  __device__ uint8_t operator()(float value) const {
    const float magnitude = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7FFFFFFF);
    uint32_t count = 0;
    for (uint32_t half = 1u << (bits - 1) >> 1; half > 0; half /= 2) {
      if (magnitude >= thresholds[count + half - 1]) count += half;
    }
    return WithSign(count, value, bits);
  }

  const float* thresholds;
  int bits;
};

struct StepRule {
  __device__ uint8_t operator()(float value) const {
    const float step = step_and_zero[0], zero = step_and_zero[1];
    if (!(step > 0)) return static_cast<uint8_t>(zero);
    return static_cast<uint8_t>(Truncated(value / step + (zero + 0.5f), 255.0f));
  }

  const float* step_and_zero;
};

struct LookUpOp {
  template <int N>
  __device__ Few<uint8_t, N> Load(size_t i) const {
    return LoadFew<uint8_t, N>(codes + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<uint8_t, N>& code) const {
    Few<float, N> value;
    for (int j = 0; j < N; ++j) value.at[j] = table[code.at[j]];
    StoreFew(value, out + i);
  }
  bool aligned() const { return BeginsAt(codes, kWidth) && BeginsAt(out, kWidth * sizeof(float)); }

  const uint8_t* codes;
  const float* table;
  float* out;
};

template <int N>
struct CodesAndSum {
  Few<uint8_t, N> code;
  Few<float, N> sum;
};

template <bool kTakes>
struct LookUpAddOp : LookUpOp {
  template <int N>
  __device__ CodesAndSum<N> Load(size_t i) const {
    return {LoadFew<uint8_t, N>(codes + i), LoadFew<float, N>(out + i)};
  }
  template <int N>
  __device__ void Store(size_t i, CodesAndSum<N> at) const {
    for (int j = 0; j < N; ++j) {
      const float entry = table[at.code.at[j]];
      at.sum.at[j] = kTakes ? at.sum.at[j] - entry : at.sum.at[j] + entry;
    }
    StoreFew(at.sum, out + i);
  }
};

}  // namespace

Status CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                         std::span<uint8_t> codes, const Stream& stream) {
  return GiveCodes("give codes of magnitudes", values, codes,
                   MagnitudeRule{thresholds.data(), bits}, stream);
}

Status CodesOfSteps(std::span<const float> values, std::span<const float, 2> step_and_zero,
                    std::span<uint8_t> codes, const Stream& stream) {
  return GiveCodes("give codes of steps", values, codes, StepRule{step_and_zero.data()}, stream);
}

Status LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out,
              const Stream& stream) {
  return ForAll("look up", LookUpOp{codes.data(), table.data(), out.data()}, out.size(), stream);
}

Status LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum,
                 const Stream& stream) {
  return ForAll("look up and add", LookUpAddOp<false>{{codes.data(), table.data(), sum.data()}},
                sum.size(), stream);
}

Status LookUpTake(std::span<const uint8_t> codes, std::span<const float> table,
                  std::span<float> values, const Stream& stream) {
  return ForAll("look up and take", LookUpAddOp<true>{{codes.data(), table.data(), values.data()}},
                values.size(), stream);
}

}  // namespace thinwire::kernels::cuda
