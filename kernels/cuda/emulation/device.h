// The device side of CUDA C++ for g++: the keywords, built-in variables and warp functions that the
// kernels use, executed by Block. Semantics: NVIDIA's CUDA C++ Programming Guide, "C++ Language
// Extensions". Used only by tests. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_EMULATION_DEVICE_H_
#define THINWIRE_KERNELS_CUDA_EMULATION_DEVICE_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/emulation/block.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
// Only one block runs at a time, so static variables can serve as the block's shared memory.
#define __shared__ static

// CUDA's built-in variables. Block sets their values before it resumes a thread.
#define threadIdx (::thinwire::kernels::cuda::emulation::Block::place().thread)
#define blockIdx (::thinwire::kernels::cuda::emulation::Block::place().block)
#define blockDim (::thinwire::kernels::cuda::emulation::Block::place().block_size)
#define gridDim (::thinwire::kernels::cuda::emulation::Block::place().grid_size)

namespace thinwire::kernels::cuda {

using emulation::Block;
using emulation::WarpOp;

inline void __syncthreads() { Block::WaitForBlock(); }
inline void __syncwarp(unsigned mask = ~0u) { Block::Exchange(WarpOp::kSync, mask, 0); }
inline void __threadfence() {}

inline unsigned __ballot_sync(unsigned mask, bool vote) {
  const auto& votes = Block::Exchange(WarpOp::kBallot, mask, vote);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0 && votes[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}

inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }

// Returns the VALUE that lane LANE of the warp passed. If the warp has no lane LANE, returns the
// VALUE of the caller.
template <typename T>
T FromLane(WarpOp op, unsigned mask, T value, int lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const auto& all = Block::Exchange(op, mask, bits);
  if (lane >= 0 && lane < 32) std::memcpy(&value, &all[static_cast<size_t>(lane)], sizeof(T));
  return value;
}

inline int LaneNumber() { return static_cast<int>(threadIdx.x % 32); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return FromLane(WarpOp::kShuffle, mask, value, lane % 32);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  return FromLane(WarpOp::kShuffle, mask, value, LaneNumber() - static_cast<int>(distance));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return FromLane(WarpOp::kShuffle, mask, value, LaneNumber() ^ bits);
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  const auto& all = Block::Exchange(WarpOp::kReduce, mask, value);
  unsigned sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0) sum += static_cast<unsigned>(all[lane]);
  }
  return sum;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  const auto& all = Block::Exchange(WarpOp::kReduce, mask, value);
  unsigned largest = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto other = static_cast<unsigned>(all[lane]);
    if ((mask >> lane & 1) != 0 && other > largest) largest = other;
  }
  return largest;
}

// The emulation switches threads only at barriers and warp operations. Code between them, such as
// the functions below, is therefore atomic.
template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to = before + value;
  return before;
}
inline unsigned atomicMax(unsigned* to, unsigned value) {
  const unsigned before = *to;
  if (value > before) *to = value;
  return before;
}
inline unsigned atomicExch(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to = value;
  return before;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_EMULATION_DEVICE_H_
