// How the values of an array are dealt to the threads of a GPU: 4096, a tile, to each block of 256
// threads, which move four at a time and have four such loads on the way at once.
#ifndef THINWIRE_KERNELS_CUDA_TILE_H_
#define THINWIRE_KERNELS_CUDA_TILE_H_

#include <cstddef>

namespace thinwire::kernels::cuda {

inline constexpr int kWidth = 4;
inline constexpr int kInFlight = 4;
inline constexpr unsigned kTileThreads = 256;
inline constexpr size_t kTileValues = size_t{kTileThreads} * kWidth * kInFlight;

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TILE_H_
