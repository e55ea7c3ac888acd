#include "kernels/cuda/ops/signs.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/block/launch.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = ~0u;

// Stores the sign bit of VALUE, the value at index I, and returns the bit. Each thread handles one
// value. The sign bits of a warp fill four bytes; the first four lanes of the warp write one byte
// each.
__device__ bool PackSign(float value, size_t i, size_t count, std::byte* bits) {
  const bool sign = std::bit_cast<uint32_t>(value) >> 31 != 0;
  const unsigned signs = __ballot_sync(kAllLanes, i < count && sign);
  const unsigned lane = threadIdx.x % kLanes;
  const size_t first = i - lane;
  if (lane < kLanes / 8 && first + lane * 8 < count) {
    bits[first / 8 + lane] = static_cast<std::byte>(signs >> (lane * 8));
  }
  return sign;
}

__global__ void PackKernel(const float* values, size_t count, std::byte* bits) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  PackSign(i < count ? values[i] : 0.0f, i, count, bits);
}

// The lookup table, which has two entries per group of values: for positive and for negative
// values.
struct Entries {
  __device__ float operator()(size_t i, bool sign) const {
    const uint32_t number = static_cast<uint32_t>(i) / group;
    return entries[2 * size_t{number} + (sign ? 1 : 0)];
  }
  const float* entries;
  uint32_t group;
};

Entries EntriesOf(std::span<const float> entries, size_t group) {
  return {entries.data(), static_cast<uint32_t>(group < UINT32_MAX ? group : UINT32_MAX)};
}

__global__ void PackSubtractKernel(Entries entries, float* values, size_t count, std::byte* bits) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const float value = i < count ? values[i] : 0.0f;
  const bool sign = PackSign(value, i, count, bits);
  if (i < count) values[i] = value - entries(i, sign);
}

__global__ void UnpackKernel(const std::byte* bits, Entries entries, float* out, size_t count,
                             bool adds) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float entry = entries(i, (static_cast<unsigned>(bits[i / 8]) >> (i % 8) & 1) != 0);
  out[i] = adds ? out[i] + entry : entry;
}

}  // namespace

Status PackSigns(std::span<const float> values, std::byte* bits, const Stream& stream) {
  return Launch("pack signs", PackKernel, OneThreadPerItem(values.size()), stream, values.data(),
                values.size(), bits);
}

Status PackSignsSubtract(std::span<const float> entries, size_t group, std::span<float> values,
                         std::byte* bits, const Stream& stream) {
  return Launch("pack signs and subtract", PackSubtractKernel, OneThreadPerItem(values.size()),
                stream, EntriesOf(entries, group), values.data(), values.size(), bits);
}

Status UnpackSigns(const std::byte* bits, std::span<const float> entries, size_t group,
                   std::span<float> out, const Stream& stream) {
  return Launch("unpack signs", UnpackKernel, OneThreadPerItem(out.size()), stream, bits,
                EntriesOf(entries, group), out.data(), out.size(), false);
}

Status UnpackSignsAdd(const std::byte* bits, std::span<const float> entries, size_t group,
                      std::span<float> sum, const Stream& stream) {
  return Launch("unpack signs and add", UnpackKernel, OneThreadPerItem(sum.size()), stream, bits,
                EntriesOf(entries, group), sum.data(), sum.size(), true);
}

}  // namespace thinwire::kernels::cuda
