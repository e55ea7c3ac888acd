#include "kernels/cuda/collect_tiles.h"

#include "kernels/collect.h"
#include "kernels/cuda/few.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = ~0u;
constexpr unsigned kWarps = kTileThreads / kLanes;
constexpr size_t kRowValues = kLanes * kWidth;  // that a warp loads at once
constexpr size_t kWarpValues = kRowValues * kInFlight;

// What a thread has of a tile: kInFlight times four values, a row of its warp apart.
struct Mine {
  Few<float, kWidth> at[kInFlight];
};

// The values from FIRST, or their sums with the gradient, written back.
template <bool kAdds>
__device__ Mine LoadSums(const SelectFrom& from, size_t first) {
  Mine sums;
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    sums.at[u] = LoadFew<float, kWidth>(from.values + first + u * kRowValues);
  }
  if constexpr (kAdds) {
    Mine added;
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      added.at[u] = LoadFew<float, kWidth>(from.gradient + first + u * kRowValues);
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      for (int j = 0; j < kWidth; ++j) sums.at[u].at[j] += added.at[u].at[j];
      StoreFew(sums.at[u], from.values + first + u * kRowValues);
    }
  }
  return sums;
}

// The same one by one, as far as there are any.
template <bool kAdds>
__device__ Mine LoadSumsToEnd(const SelectFrom& from, size_t first) {
  Mine sums;
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    for (int j = 0; j < kWidth; ++j) {
      const size_t i = first + u * kRowValues + static_cast<size_t>(j);
      sums.at[u].at[j] = 0;
      if (i >= from.count) continue;
      sums.at[u].at[j] = from.values[i];
      if constexpr (kAdds) from.values[i] = sums.at[u].at[j] += from.gradient[i];
    }
  }
  return sums;
}

// Which of them reach SMALLEST: bit kWidth * u + j.
__device__ uint32_t HitsOf(const Mine& sums, uint32_t smallest, size_t first, size_t count) {
  uint32_t hits = 0;
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    for (int j = 0; j < kWidth; ++j) {
      const bool there = first + u * kRowValues + static_cast<size_t>(j) < count;
      const bool hit = there && MagnitudeBits(sums.at[u].at[j]) >= smallest;
      hits |= static_cast<uint32_t>(hit) << (kWidth * u + j);
    }
  }
  return hits;
}

// Where in the candidates a tile's begin. WARP_COUNTS are the block's; thread 0 asks for all.
__device__ void ReserveForTile(const uint32_t* warp_counts, const TopKWorkspace& work,
                               uint32_t* begin) {
  uint32_t count = 0;
  for (unsigned w = 0; w < kWarps; ++w) count += warp_counts[w];
  *begin = count == 0 ? 0 : atomicAdd(&work.state->found_count, count);
  work.tile_begin[blockIdx.x] = *begin;
  work.tile_count[blockIdx.x] = count;
}

// Puts the warp's hits, in the order of their indices, to the candidates from number AT: rows
// first, then lanes, then the four of a lane.
__device__ void PutHits(const Mine& sums, uint32_t hits, size_t first, size_t at,
                        const TopKWorkspace& work) {
  const unsigned lanes_before = (1u << threadIdx.x % kLanes) - 1;
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) {
    const uint32_t row_hits = hits >> (kWidth * u) & ((1u << kWidth) - 1);
    size_t place = at;
    for (int j = 0; j < kWidth; ++j) {
      const unsigned ballot = __ballot_sync(kAllLanes, (row_hits >> j & 1) != 0);
      place += static_cast<unsigned>(__popc(ballot & lanes_before));
      at += static_cast<unsigned>(__popc(ballot));
    }
    for (int j = 0; j < kWidth; ++j) {
      if ((row_hits >> j & 1) == 0) continue;
      if (place < work.room) {
        work.candidate_indices[place] =
            static_cast<uint32_t>(first + u * kRowValues + static_cast<size_t>(j));
        work.candidate_values[place] = sums.at[u].at[j];
      }
      ++place;
    }
  }
}

// Each warp has a run of the tile.
template <bool kAdds>
__global__ void CollectKernel(SelectFrom from, bool aligned, const uint32_t* collect_from,
                              TopKWorkspace work) {
  __shared__ uint32_t warp_counts[kWarps];
  __shared__ uint32_t tile_begin;
  const unsigned warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const size_t first = blockIdx.x * kTileValues + warp * kWarpValues + lane * kWidth;
  const bool whole = aligned && (blockIdx.x + size_t{1}) * kTileValues <= from.count;
  const Mine sums = whole ? LoadSums<kAdds>(from, first) : LoadSumsToEnd<kAdds>(from, first);
  const uint32_t hits = HitsOf(sums, SmallestToCollect(*collect_from), first, from.count);
  const uint32_t count = __reduce_add_sync(kAllLanes, static_cast<unsigned>(__popc(hits)));
  if (lane == 0) warp_counts[warp] = count;
  __syncthreads();
  if (threadIdx.x == 0) ReserveForTile(warp_counts, work, &tile_begin);
  __syncthreads();
  if (count == 0) return;
  size_t at = tile_begin;
  for (unsigned w = 0; w < warp; ++w) at += warp_counts[w];
  PutHits(sums, hits, first, at, work);
}

}  // namespace

Status CollectTiles(const SelectFrom& from, const uint32_t* collect_from, const TopKWorkspace& work,
                    const Stream& stream) {
  constexpr size_t kBytes = kWidth * sizeof(float);
  const bool aligned = BeginsAt(from.gradient, kBytes) && BeginsAt(from.values, kBytes);
  return Launch("collect", from.gradient == nullptr ? CollectKernel<false> : CollectKernel<true>,
                {work.tiles, kTileThreads}, stream, from, aligned, collect_from, work);
}

}  // namespace thinwire::kernels::cuda
