#include "kernels/cuda/ops/qsgd.h"

#include <bit>

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/vector_access.h"
#include "kernels/mix_bits.h"
#include "kernels/pack_bits.h"

namespace thinwire::kernels::cuda {
namespace {

// Number of threads per block. A block handles one group of values; a thread handles one unit of
// eight codes.
constexpr unsigned kThreads = kQsgdGroup / kCodesInUnit;
constexpr size_t kDrawsInWord = 4;

constexpr Grid OneBlockPerGroup(size_t count) {
  return {(count + kQsgdGroup - 1) / kQsgdGroup, kThreads};
}

__device__ uint32_t MagnitudeOf(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF; }

// Returns the magnitude that C, a code without its sign bit, decodes to. LEVELS is 0 for fp4_e3m0.
__device__ float DecodedMagnitude(uint32_t c, float largest, float levels) {
  if (levels == 0.0f) return c == 0 ? 0.0f : largest * std::bit_cast<float>((120 + c) << 23);
  const auto level = static_cast<float>(c);
  return largest * ((level < levels ? level : levels) / levels);
}

__device__ uint32_t NearestPowerOfTwo(float value, float largest) {
  const float magnitude = std::bit_cast<float>(MagnitudeOf(value));
  uint32_t c = 0;
  for (uint32_t i = 0; i < 7; ++i) {
    const float threshold =
        0.5f * DecodedMagnitude(i, largest, 0) + 0.5f * DecodedMagnitude(i + 1, largest, 0);
    c += threshold <= magnitude ? 1 : 0;
  }
  return c;
}

__device__ uint32_t LevelOf(float value, float largest, float levels, uint32_t draw) {
  if (levels == 0.0f) return NearestPowerOfTwo(value, largest);
  const float scaled = std::bit_cast<float>(MagnitudeOf(value)) / largest * levels;
  const float dithered = scaled + static_cast<float>(draw) * 0x1p-16f;
  // If all values of a group are 0, LARGEST is 0 and DITHERED is a NaN (0 / 0). The comparison
  // turns the NaN into level 0.
  const float positive = dithered > 0.0f ? dithered : 0.0f;
  return static_cast<uint32_t>(positive < levels ? positive : levels);
}

struct Unit {
  float at[kCodesInUnit];
};

// Returns elements FIRST to FIRST + 7 of GRADIENT, or of the sum of RESIDUAL and GRADIENT if
// RESIDUAL is not null. Elements from index COUNT on are 0.
__device__ Unit LoadUnit(const float* gradient, const float* residual, size_t count, size_t first) {
  Unit unit;
#pragma unroll
  for (size_t j = 0; j < kCodesInUnit; ++j) {
    const size_t i = first + j;
    unit.at[j] = i >= count ? 0.0f : residual == nullptr ? gradient[i] : residual[i] + gradient[i];
  }
  return unit;
}

// Returns the largest magnitude of the group that the block handles. Every thread of the block gets
// the result.
__device__ float LargestOfGroup(const Unit& unit) {
  __shared__ uint32_t largest_of_warp[kThreads / 32];
  uint32_t largest = 0;
#pragma unroll
  for (size_t j = 0; j < kCodesInUnit; ++j) {
    const uint32_t magnitude = MagnitudeOf(unit.at[j]);
    if (magnitude > largest) largest = magnitude;
  }
  largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x % 32 == 0) largest_of_warp[threadIdx.x / 32] = largest;
  __syncthreads();
  for (unsigned w = 0; w < kThreads / 32; ++w) {
    if (largest_of_warp[w] > largest) largest = largest_of_warp[w];
  }
  return std::bit_cast<float>(largest);
}

__global__ void EncodeKernel(const float* gradient, float* residual, size_t count, QsgdCode code,
                             QsgdPayload out) {
  const size_t first = blockIdx.x * kQsgdGroup + threadIdx.x * kCodesInUnit;
  const Unit unit = LoadUnit(gradient, residual, count, first);
  const float largest = LargestOfGroup(unit);
  if (threadIdx.x == 0) StoreFloatUnaligned(largest, out.numbers, blockIdx.x);
  if (first >= count) return;
  const auto levels = static_cast<float>(code.levels);
  uint64_t word = 0, draws = 0;
#pragma unroll
  for (size_t j = 0; j < kCodesInUnit; ++j) {
    if (j % kDrawsInWord == 0) draws = MixBits(code.draw + (first + j) / kDrawsInWord);
    if (first + j >= count) break;
    const float value = unit.at[j];
    const uint32_t level =
        LevelOf(value, largest, levels, static_cast<uint32_t>(draws >> (16 * (j % 4)) & 0xFFFF));
    const uint32_t sign = std::bit_cast<uint32_t>(value) >> 31;
    word |= uint64_t{level | sign << (code.bits - 1)} << (static_cast<int>(j) * code.bits);
    if (residual == nullptr) continue;
    const float sent = DecodedMagnitude(level, largest, levels);
    residual[first + j] = value - (sign != 0 ? -sent : sent);
  }
  StorePackedUnit(word, code.bits, out.codes, first / kCodesInUnit);
}

__global__ void DecodeKernel(QsgdPayload from, QsgdCode code, float scale, float* out, size_t count,
                             bool adds) {
  const size_t first = blockIdx.x * kQsgdGroup + threadIdx.x * kCodesInUnit;
  if (first >= count) return;
  const float largest = LoadFloatUnaligned(from.numbers, blockIdx.x);
  const auto levels = static_cast<float>(code.levels);
  const uint64_t word = LoadPackedUnit(from.codes, code.bits, first / kCodesInUnit);
  const uint32_t sign = 1u << (code.bits - 1);
  for (size_t j = 0; j < kCodesInUnit && first + j < count; ++j) {
    const auto c =
        static_cast<uint32_t>(word >> (static_cast<int>(j) * code.bits)) & (2 * sign - 1);
    const float magnitude = scale * DecodedMagnitude(c & (sign - 1), largest, levels);
    const float value = (c & sign) != 0 ? -magnitude : magnitude;
    out[first + j] = adds ? out[first + j] + value : value;
  }
}

}  // namespace

Status EncodeQsgd(std::span<const float> values, const QsgdCode& code, const QsgdPayload& out,
                  const Stream& stream) {
  return Launch("QSGD encode", EncodeKernel, OneBlockPerGroup(values.size()), stream, values.data(),
                nullptr, values.size(), code, out);
}

Status EncodeQsgdFeedback(std::span<const float> gradient, std::span<float> residual,
                          const QsgdCode& code, const QsgdPayload& out, const Stream& stream) {
  return Launch("QSGD encode with feedback", EncodeKernel, OneBlockPerGroup(gradient.size()),
                stream, gradient.data(), residual.data(), gradient.size(), code, out);
}

Status DecodeQsgd(const QsgdPayload& from, const QsgdCode& code, float scale, std::span<float> out,
                  const Stream& stream) {
  return Launch("QSGD decode", DecodeKernel, OneBlockPerGroup(out.size()), stream, from, code,
                scale, out.data(), out.size(), false);
}

Status DecodeQsgdAdd(const QsgdPayload& from, const QsgdCode& code, float scale,
                     std::span<float> sum, const Stream& stream) {
  return Launch("QSGD decode and add", DecodeKernel, OneBlockPerGroup(sum.size()), stream, from,
                code, scale, sum.data(), sum.size(), true);
}

}  // namespace thinwire::kernels::cuda
