#include "kernels/cuda/ops/codes.h"

#include <bit>

#include "kernels/cuda/block/elementwise.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ uint8_t WithSign(uint32_t count, float value, int bits) {
  return static_cast<uint8_t>(count | std::bit_cast<uint32_t>(value) >> 31 << (bits - 1));
}

// Returns trunc(X), clamped to 0 .. MOST; 0 for a NaN.
__device__ uint32_t Truncated(float x, float most) {
  const float positive = x > 0.0f ? x : 0.0f;
  return static_cast<uint32_t>(positive < most ? positive : most);
}

// Computes codes[i] = rule(values[i]). A Rule is a function object that maps one value to its code.
template <typename Rule>
struct CodesOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& value) const {
    Pack<uint8_t, N> code;
    for (int j = 0; j < N; ++j) code.at[j] = rule(value.at[j]);
    StorePack(code, codes + i);
  }
  bool aligned() const {
    return IsAligned(values, kPackSize * sizeof(float)) && IsAligned(codes, kPackSize);
  }

  const float* values;
  uint8_t* codes;
  Rule rule;
};

template <typename Rule>
Status LaunchCodes(const char* operation, std::span<const float> values, std::span<uint8_t> codes,
                   const Rule& rule, const Stream& stream) {
  return LaunchElementwise(operation, CodesOp<Rule>{values.data(), codes.data(), rule},
                           values.size(), stream);
}

// Returns the code of one value, as CodesOfMagnitudes() does for an array. Counts, by binary search,
// the thresholds that are at most the value's magnitude. There are 2^(bits - 1) - 1 thresholds.
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
  __device__ Pack<uint8_t, N> Load(size_t i) const {
    return LoadPack<uint8_t, N>(codes + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<uint8_t, N>& code) const {
    Pack<float, N> value;
    for (int j = 0; j < N; ++j) value.at[j] = table[code.at[j]];
    StorePack(value, out + i);
  }
  bool aligned() const {
    return IsAligned(codes, kPackSize) && IsAligned(out, kPackSize * sizeof(float));
  }

  const uint8_t* codes;
  const float* table;
  float* out;
};

template <int N>
struct CodesAndSum {
  Pack<uint8_t, N> code;
  Pack<float, N> sum;
};

template <bool kSubtracts>
struct LookUpAddOp : LookUpOp {
  template <int N>
  __device__ CodesAndSum<N> Load(size_t i) const {
    return {LoadPack<uint8_t, N>(codes + i), LoadPack<float, N>(out + i)};
  }
  template <int N>
  __device__ void Store(size_t i, CodesAndSum<N> at) const {
    for (int j = 0; j < N; ++j) {
      const float entry = table[at.code.at[j]];
      at.sum.at[j] = kSubtracts ? at.sum.at[j] - entry : at.sum.at[j] + entry;
    }
    StorePack(at.sum, out + i);
  }
};

}  // namespace

Status CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                         std::span<uint8_t> codes, const Stream& stream) {
  return LaunchCodes("compute codes of magnitudes", values, codes,
                     MagnitudeRule{thresholds.data(), bits}, stream);
}

Status CodesOfSteps(std::span<const float> values, std::span<const float, 2> step_and_zero,
                    std::span<uint8_t> codes, const Stream& stream) {
  return LaunchCodes("compute codes of steps", values, codes, StepRule{step_and_zero.data()},
                     stream);
}

Status LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out,
              const Stream& stream) {
  return LaunchElementwise("look up", LookUpOp{codes.data(), table.data(), out.data()}, out.size(),
                           stream);
}

Status LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum,
                 const Stream& stream) {
  return LaunchElementwise("look up and add",
                           LookUpAddOp<false>{{codes.data(), table.data(), sum.data()}}, sum.size(),
                           stream);
}

Status LookUpSubtract(std::span<const uint8_t> codes, std::span<const float> table,
                      std::span<float> values, const Stream& stream) {
  return LaunchElementwise("look up and subtract",
                           LookUpAddOp<true>{{codes.data(), table.data(), values.data()}},
                           values.size(), stream);
}

}  // namespace thinwire::kernels::cuda
