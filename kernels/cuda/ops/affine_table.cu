#include "kernels/cuda/ops/affine_table.h"

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/vector_access.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr float kLargestCode = 255.0f;

// The members of AffineTable as pointers, because device code cannot use spans.
struct DeviceTable {
  std::byte* zero_byte;
  std::byte* step_bytes;
  float* step_and_zero;
  float* table;
};

// Returns the smallest range that contains all RANGES. Every thread of the block gets the result.
__device__ Range UnionOf(const Range* ranges, size_t count) {
  __shared__ float least_of[kThreads], most_of[kThreads];
  Range range;
  for (size_t i = threadIdx.x; i < count; i += kThreads) {
    range.least = ranges[i].least < range.least ? ranges[i].least : range.least;
    range.most = ranges[i].most > range.most ? ranges[i].most : range.most;
  }
  least_of[threadIdx.x] = range.least;
  most_of[threadIdx.x] = range.most;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float least = least_of[threadIdx.x + half], most = most_of[threadIdx.x + half];
      if (least < least_of[threadIdx.x]) least_of[threadIdx.x] = least;
      if (most > most_of[threadIdx.x]) most_of[threadIdx.x] = most;
    }
    __syncthreads();
  }
  return {least_of[0], most_of[0]};
}

// Returns the code that stands for the value 0.
__device__ float ZeroCode(const Range& range, float step) {
  if (!(step > 0)) return 0.0f;
  const float rounded = -range.least / step + 0.5f;
  const float clamped = rounded < 0.0f ? 0.0f : rounded > kLargestCode ? kLargestCode : rounded;
  return static_cast<float>(static_cast<uint32_t>(clamped));
}

__global__ void AffineTableKernel(const Range* ranges, size_t count, DeviceTable out) {
  const Range range = UnionOf(ranges, count);
  const float step = range.most / kLargestCode - range.least / kLargestCode;
  const float zero = ZeroCode(range, step);
  // The table entry, step * (code - zero), can overflow only for a code that encodes no value of
  // the array. Such an entry is limited to FLT_MAX.
  const float value = step * (static_cast<float>(threadIdx.x) - zero);
  out.table[threadIdx.x] = value > FLT_MAX ? FLT_MAX : value < -FLT_MAX ? -FLT_MAX : value;
  if (threadIdx.x > 0) return;
  out.step_and_zero[0] = step;
  out.step_and_zero[1] = zero;
  *out.zero_byte = static_cast<std::byte>(static_cast<uint32_t>(zero));
  StoreFloatUnaligned(step, out.step_bytes, 0);
}

}  // namespace

Status FitAffineTable(std::span<const Range> ranges, const AffineTable& out, const Stream& stream) {
  const DeviceTable to = {out.zero_byte, out.step_bytes, out.step_and_zero.data(),
                          out.table.data()};
  return Launch("fit an affine table", AffineTableKernel, {1, kThreads}, stream, ranges.data(),
                ranges.size(), to);
}

}  // namespace thinwire::kernels::cuda
