// Few: neighbours in memory that a thread moves as one. Included only by the sources of kernels.
#ifndef THINWIRE_KERNELS_CUDA_FEW_H_
#define THINWIRE_KERNELS_CUDA_FEW_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

// Four floats are 16 bytes, the most that one instruction loads.
template <typename T, int N>
struct alignas(sizeof(T) * N) Few {
  T at[N];
};

// REQUIRES, for the three: N is 1, or the address is a multiple of the size of all N.
template <typename T, int N>
__device__ Few<T, N> LoadFew(const T* from) {
  return *reinterpret_cast<const Few<T, N>*>(from);
}

template <typename T, int N>
__device__ void StoreFew(const Few<T, N>& few, T* to) {
  *reinterpret_cast<Few<T, N>*>(to) = few;
}

// A sum of two arrays: a residual and a gradient.
template <int N>
__device__ Few<float, N> LoadSum(const float* a, const float* b) {
  Few<float, N> sum = LoadFew<float, N>(a);
  const Few<float, N> added = LoadFew<float, N>(b);
  for (int j = 0; j < N; ++j) sum.at[j] += added.at[j];
  return sum;
}

// LoadFew and StoreFew from number I of an array at any address. One alone is moved byte by byte.
template <typename T, int N>
__device__ Few<T, N> LoadFewBytes(const std::byte* array, size_t i) {
  const std::byte* from = array + i * sizeof(T);
  if constexpr (N > 1) {
    return *reinterpret_cast<const Few<T, N>*>(from);
  } else {
    uint32_t bits = 0;
    for (size_t b = 0; b < sizeof(T); ++b) bits |= static_cast<uint32_t>(from[b]) << (8 * b);
    return {{static_cast<T>(bits)}};
  }
}

template <typename T, int N>
__device__ void StoreFewBytes(const Few<T, N>& few, std::byte* array, size_t i) {
  std::byte* to = array + i * sizeof(T);
  if constexpr (N > 1) {
    *reinterpret_cast<Few<T, N>*>(to) = few;
  } else {
    for (size_t b = 0; b < sizeof(T); ++b) to[b] = static_cast<std::byte>(few.at[0] >> (8 * b));
  }
}

// The same of one float.
__device__ inline void PutFloat(float value, std::byte* array, size_t i) {
  StoreFewBytes(Few<uint32_t, 1>{{std::bit_cast<uint32_t>(value)}}, array, i);
}
__device__ inline float TakeFloat(const std::byte* array, size_t i) {
  return std::bit_cast<float>(LoadFewBytes<uint32_t, 1>(array, i).at[0]);
}

// Whether ARRAY begins at a multiple of BYTES.
inline bool BeginsAt(const void* array, size_t bytes) {
  return reinterpret_cast<uintptr_t>(array) % bytes == 0;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_FEW_H_
