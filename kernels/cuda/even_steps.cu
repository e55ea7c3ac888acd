#include "kernels/cuda/even_steps.h"

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/few.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr float kLargestCode = 255.0f;

// Spans have no place in the code of a kernel.
struct Out {
  std::byte* zero_byte;
  std::byte* step_bytes;
  float* step_and_zero;
  float* table;
};

// Of all ranges that of everything: a thread for each warp's part, then one for the warps'.
__device__ Range WidestOf(const Range* ranges, size_t count) {
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

// The nearest code of 0, a whole number.
__device__ float ZeroOf(const Range& range, float step) {
  if (!(step > 0)) return 0.0f;
  const float place = -range.least / step + 0.5f;
  const float held = place < 0.0f ? 0.0f : place > kLargestCode ? kLargestCode : place;
  return static_cast<float>(static_cast<uint32_t>(held));
}

__global__ void StepsKernel(const Range* ranges, size_t count, Out out) {
  const Range range = WidestOf(ranges, count);
  const float step = range.most / kLargestCode - range.least / kLargestCode;
  const float zero = ZeroOf(range, step);
  // A product beyond the largest float is of a code that no value gets.
  const float value = step * (static_cast<float>(threadIdx.x) - zero);
  out.table[threadIdx.x] = value > FLT_MAX ? FLT_MAX : value < -FLT_MAX ? -FLT_MAX : value;
  if (threadIdx.x > 0) return;
  out.step_and_zero[0] = step;
  out.step_and_zero[1] = zero;
  *out.zero_byte = static_cast<std::byte>(static_cast<uint32_t>(zero));
  PutFloat(step, out.step_bytes, 0);
}

}  // namespace

Status EvenSteps(std::span<const Range> ranges, const Steps& out, const Stream& stream) {
  const Out to = {out.zero_byte, out.step_bytes, out.step_and_zero.data(), out.table.data()};
  return Launch("fit even steps", StepsKernel, {1, kThreads}, stream, ranges.data(), ranges.size(),
                to);
}

}  // namespace thinwire::kernels::cuda
