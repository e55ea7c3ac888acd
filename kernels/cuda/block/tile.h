// Launch shapes. Elementwise kernels give each block of 256 threads one tile of 4096 values; each
// thread loads four packs of four adjacent values before it uses the first pack. Other kernels use
// one thread per item.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_TILE_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_TILE_H_

#include <cstddef>

namespace thinwire::kernels::cuda {

inline constexpr int kPackSize = 4;        // number of values that one instruction loads or stores
inline constexpr int kPacksPerThread = 4;  // number of packs that a thread loads before it uses one
inline constexpr unsigned kTileThreads = 256;
inline constexpr size_t kTileValues = size_t{kTileThreads} * kPackSize * kPacksPerThread;

// The shape of a kernel launch: the number of blocks and the size of a block.
struct Grid {
  size_t block_count = 0;
  unsigned thread_count = 0;  // threads per block

  bool operator==(const Grid&) const = default;
};

// Returns the shape with one block for each tile of an array of COUNT values.
constexpr Grid OneBlockPerTile(size_t count) {
  return {(count + kTileValues - 1) / kTileValues, kTileThreads};
}

// Returns the shape with at least one thread for each of COUNT items, in blocks of THREAD_COUNT
// threads.
constexpr Grid OneThreadPerItem(size_t count, unsigned thread_count = 256) {
  return {(count + thread_count - 1) / thread_count, thread_count};
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_TILE_H_
