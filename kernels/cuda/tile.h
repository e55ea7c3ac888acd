// How values are dealt to the threads of a GPU: 4096, a tile, to each block of 256 threads, which
// move four at a time and have four such loads on the way at once; or one to each thread.
#ifndef THINWIRE_KERNELS_CUDA_TILE_H_
#define THINWIRE_KERNELS_CUDA_TILE_H_

#include <cstddef>

namespace thinwire::kernels::cuda {

inline constexpr int kWidth = 4;
inline constexpr int kInFlight = 4;
inline constexpr unsigned kTileThreads = 256;
inline constexpr size_t kTileValues = size_t{kTileThreads} * kWidth * kInFlight;

// The shape of a launch.
struct Grid {
  size_t block_count = 0;
  unsigned thread_count = 0;  // of a block

  bool operator==(const Grid&) const = default;
};

constexpr Grid OneBlockATile(size_t count) {
  return {(count + kTileValues - 1) / kTileValues, kTileThreads};
}

// So many blocks of THREAD_COUNT that each of COUNT things gets a thread.
constexpr Grid OneThreadEach(size_t count, unsigned thread_count = 256) {
  return {(count + thread_count - 1) / thread_count, thread_count};
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TILE_H_
