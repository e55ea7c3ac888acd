// What a selection of the top k leaves for its next launch, in memory that the caller lends.
//
//   state                 what is counted and found; begins as zeros
//   tile_begin, _count    which of the candidates lie in a tile, rising
//   tile_totals           how many of a tile are above the k-th (upper half) and as large; then how
//                         many there are before the tile
//   candidates            what was collected, the tiles in any order
#ifndef THINWIRE_KERNELS_CUDA_TOP_K_WORKSPACE_H_
#define THINWIRE_KERNELS_CUDA_TOP_K_WORKSPACE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/collect_from.h"

namespace thinwire::kernels::cuda {

// The 31 bits of a magnitude are found in three passes, the upper ones first.
inline constexpr int kDigits = 3;
constexpr int DigitBits(int digit) { return digit == 0 ? 11 : 10; }
constexpr int DigitShift(int digit) { return 20 - 10 * digit; }
inline constexpr unsigned kMostBins = 1 << 11;

// Where to collect from, given what the last selection left; without one, what no magnitude
// reaches.
constexpr uint32_t SmallestToCollect(uint32_t collect_from) {
  if (collect_from == 0) return 0x80000000;
  return collect_from < 0x7FFFFFFF ? collect_from : 0x7FFFFFFF;
}

struct TopKState {
  uint32_t found_count;                    // collected, or more than there is room for
  uint32_t blocks_done[kDigits];           // of the launch for a digit
  uint32_t prefix[kDigits];                // the k-th's digits up to this one, the rest zeros
  uint32_t rank[kDigits];                  // the k-th's among those that have the same digits
  uint32_t histogram[kDigits][kMostBins];  // how many have each digit
};

struct TopKWorkspace {
  // Of a selection of K of COUNT, at MEMORY.
  TopKWorkspace(size_t count, size_t k, std::byte* memory);

  TopKState* state = nullptr;
  uint32_t* tile_begin = nullptr;
  uint32_t* tile_count = nullptr;
  uint64_t* tile_totals = nullptr;
  uint32_t* candidate_indices = nullptr;
  float* candidate_values = nullptr;

  size_t tiles = 0;
  size_t room = 0;  // for candidates
  size_t bytes = 0;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TOP_K_WORKSPACE_H_
