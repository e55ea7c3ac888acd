#include "kernels/cuda/magnitude.h"

#include <bit>
#include <cstdint>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

// Magnitudes are compared as integers: they order as the floats do, and a NaN is above them all.
struct LargestOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return b == nullptr ? LoadFew<float, N>(a + i) : LoadSum<N>(a + i, b + i);
  }
  template <int N>
  __device__ void Store(size_t, const Few<float, N>& value) {
    for (int j = 0; j < N; ++j) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(value.at[j]) & 0x7FFFFFFF;
      if (magnitude > largest) largest = magnitude;
    }
  }
  bool aligned() const {
    return BeginsAt(a, kWidth * sizeof(float)) && BeginsAt(b, kWidth * sizeof(float));
  }

  const float* a;
  const float* b;  // or none
  uint32_t largest = 0;
};

// Magnitudes are not negative, so their bits order as they do and LARGEST begins as 0.
__global__ void LargestKernel(LargestOp op, size_t count, bool aligned, uint32_t* largest) {
  __shared__ uint32_t of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  ForTile(op, count, aligned);
  const uint32_t of_warp = __reduce_max_sync(~0u, op.largest);
  if (threadIdx.x % 32 == 0) atomicMax(&of_block, of_warp);
  __syncthreads();
  if (threadIdx.x == 0 && of_block > 0) atomicMax(largest, of_block);
}

Status Largest(const LargestOp& op, size_t count, float* largest, const Stream& stream) {
  const Status status = Clear(std::as_writable_bytes(std::span(largest, 1)), stream);
  if (!status.ok()) return status;
  return Launch("find the largest magnitude", LargestKernel, OneBlockATile(count), stream, op,
                count, op.aligned(), reinterpret_cast<uint32_t*>(largest));
}

}  // namespace

Status LargestMagnitude(std::span<const float> values, float* largest, const Stream& stream) {
  return Largest({values.data(), nullptr}, values.size(), largest, stream);
}

Status LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b, float* largest,
                             const Stream& stream) {
  return Largest({a.data(), b.data()}, a.size(), largest, stream);
}

}  // namespace thinwire::kernels::cuda
