// Loads and stores for CUDA kernels. For .cu files only.
//
//   Pack<T, N>                 N adjacent elements that one instruction loads or stores
//   Load/StorePack             packs of an aligned array
//   Load/StorePackUnaligned    packs of an array of bytes; a one-element pack may be unaligned
//   Load/StoreFloatUnaligned   one float, which may be unaligned, of an array of bytes
//   Load/StorePackedUnit       eight codes of B bits (kernels/pack_bits.h) as one word of B bytes
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_VECTOR_ACCESS_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_VECTOR_ACCESS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

// N adjacent elements. Four floats occupy 16 bytes, the maximum that one instruction loads.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
};

// Returns whether ARRAY begins at a multiple of BYTES.
inline bool IsAligned(const void* array, size_t bytes) {
  return reinterpret_cast<uintptr_t>(array) % bytes == 0;
}

// REQUIRES, for LoadPack, StorePack and LoadSum: N == 1, or every pointer argument is aligned to
// sizeof(Pack<T, N>) bytes.
template <typename T, int N>
__device__ Pack<T, N> LoadPack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}

template <typename T, int N>
__device__ void StorePack(const Pack<T, N>& pack, T* to) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// Loads N elements from A and N elements from B and returns the sums a[j] + b[j].
template <int N>
__device__ Pack<float, N> LoadSum(const float* a, const float* b) {
  Pack<float, N> sum = LoadPack<float, N>(a);
  const Pack<float, N> other = LoadPack<float, N>(b);
  for (int j = 0; j < N; ++j) sum.at[j] += other.at[j];
  return sum;
}

// Loads elements I to I + N - 1 of ARRAY, an array of T that need not be aligned. A one-element
// pack is read byte by byte. REQUIRES: N == 1, or the address of element I is a multiple of
// sizeof(Pack<T, N>).
template <typename T, int N>
__device__ Pack<T, N> LoadPackUnaligned(const std::byte* array, size_t i) {
  const std::byte* from = array + i * sizeof(T);
  if constexpr (N > 1) {
    return *reinterpret_cast<const Pack<T, N>*>(from);
  } else {
    uint32_t bits = 0;
    for (size_t b = 0; b < sizeof(T); ++b) bits |= static_cast<uint32_t>(from[b]) << (8 * b);
    return {{static_cast<T>(bits)}};
  }
}

// Stores elements I to I + N - 1 of ARRAY. REQUIRES: the conditions of LoadPackUnaligned().
template <typename T, int N>
__device__ void StorePackUnaligned(const Pack<T, N>& pack, std::byte* array, size_t i) {
  std::byte* to = array + i * sizeof(T);
  if constexpr (N > 1) {
    *reinterpret_cast<Pack<T, N>*>(to) = pack;
  } else {
    for (size_t b = 0; b < sizeof(T); ++b) to[b] = static_cast<std::byte>(pack.at[0] >> (8 * b));
  }
}

// The two functions below load and store element I of ARRAY, an array of floats that need not be
// aligned.
__device__ inline float LoadFloatUnaligned(const std::byte* array, size_t i) {
  return std::bit_cast<float>(LoadPackUnaligned<uint32_t, 1>(array, i).at[0]);
}
__device__ inline void StoreFloatUnaligned(float value, std::byte* array, size_t i) {
  StorePackUnaligned(Pack<uint32_t, 1>{{std::bit_cast<uint32_t>(value)}}, array, i);
}

// The two functions below load and store unit UNIT of PACKED. A unit consists of eight codes of
// BITS bits each, so it occupies BITS bytes. The word contains these bytes in its lowest bytes. The
// lowest BITS bits of the word are the first code of the unit.
__device__ inline uint64_t LoadPackedUnit(const std::byte* packed, int bits, size_t unit) {
  const std::byte* const from = packed + unit * static_cast<size_t>(bits);
  uint64_t word = 0;
  for (int b = 0; b < bits; ++b) word |= static_cast<uint64_t>(from[b]) << (8 * b);
  return word;
}
__device__ inline void StorePackedUnit(uint64_t word, int bits, std::byte* packed, size_t unit) {
  std::byte* const to = packed + unit * static_cast<size_t>(bits);
  for (int b = 0; b < bits; ++b) to[b] = static_cast<std::byte>(word >> (8 * b));
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_VECTOR_ACCESS_H_
