#include "kernels/cuda/top_k.h"

#include <algorithm>

#include "kernels/collect_from.h"
#include "kernels/cuda/add.h"
#include "kernels/cuda/block_scan.h"
#include "kernels/cuda/collect_tiles.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile.h"
#include "kernels/cuda/top_k_workspace.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = ~0u;
constexpr unsigned kWarps = kTileThreads / kLanes;
constexpr unsigned kScanThreads = 1024;
constexpr size_t kScanWidth = 4;
// Enough to fill any GPU when all the values are gone through; each has some work to begin and end.
constexpr size_t kMostDigitBlocks = 1024;

__device__ unsigned LanesBefore() { return (1u << threadIdx.x % kLanes) - 1; }

// Whether what was collected holds the top k.
__device__ bool Guessed(const TopKWorkspace& work, size_t k) {
  return work.state->found_count >= k && work.state->found_count <= work.room;
}

// Of the digit DIGIT those who have the K-th's digits before it. What other blocks counted is in no
// cache of this one.
__device__ void CountDigits(const float* values, size_t count, int digit, uint32_t prefix,
                            uint32_t* bins, uint32_t* histogram) {
  const int shift = DigitShift(digit), bits = DigitBits(digit);
  const uint32_t bin_count = 1u << bits;
  for (uint32_t b = threadIdx.x; b < bin_count; b += kTileThreads) bins[b] = 0;
  __syncthreads();
  const size_t step = size_t{gridDim.x} * kTileThreads;
#pragma unroll 4
  for (size_t i = size_t{blockIdx.x} * kTileThreads + threadIdx.x; i < count; i += step) {
    const uint32_t magnitude = MagnitudeBits(values[i]);
    if (magnitude >> (shift + bits) != prefix >> (shift + bits)) continue;
    atomicAdd(&bins[magnitude >> shift & (bin_count - 1)], 1u);
  }
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < bin_count; b += kTileThreads) {
    if (bins[b] > 0) atomicAdd(&histogram[b], bins[b]);
  }
}

// The digit of the value that is number RANK from the largest: the last block's threads have a few
// digits each, the first the largest ones.
__device__ void FindDigit(TopKState* state, int digit, uint32_t prefix, uint32_t rank) {
  const volatile uint32_t* histogram = state->histogram[digit];
  const unsigned each = (1u << DigitBits(digit)) / kTileThreads;
  const unsigned top = (kTileThreads - threadIdx.x) * each;
  uint32_t mine = 0, total = 0;
  for (unsigned b = 1; b <= each; ++b) mine += histogram[top - b];
  uint32_t above = SumBefore<kTileThreads>(mine, total);
  if (rank <= above || rank > above + mine) return;
  unsigned bin = top - 1;
  for (; rank > above + histogram[bin]; --bin) above += histogram[bin];
  state->prefix[digit] = prefix | bin << DigitShift(digit);
  state->rank[digit] = rank - above;
}

__global__ void DigitKernel(const float* values, size_t count, size_t k, int digit,
                            TopKWorkspace work) {
  __shared__ uint32_t bins[kMostBins];
  __shared__ bool is_last;
  TopKState* const state = work.state;
  const uint32_t prefix = digit == 0 ? 0 : state->prefix[digit - 1];
  const uint32_t rank = digit == 0 ? static_cast<uint32_t>(k) : state->rank[digit - 1];
  const bool guessed = Guessed(work, k);
  CountDigits(guessed ? work.candidate_values : values, guessed ? state->found_count : count, digit,
              prefix, bins, state->histogram[digit]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&state->blocks_done[digit], 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  FindDigit(state, digit, prefix, rank);
}

// What there is to select from in a tile, indices rising: its candidates, or all its values.
struct TileEntries {
  const uint32_t* indices;  // or null: they count up from FIRST
  const float* values;
  uint32_t first;
  uint32_t count;

  __device__ uint32_t Index(uint32_t e) const {
    return indices == nullptr ? first + e : indices[e];
  }
};

__device__ TileEntries EntriesOf(const float* values, size_t count, size_t k, size_t tile,
                                 const TopKWorkspace& work) {
  if (Guessed(work, k)) {
    const uint32_t begin = work.tile_begin[tile];
    return {work.candidate_indices + begin, work.candidate_values + begin, 0,
            work.tile_count[tile]};
  }
  const size_t first = tile * kTileValues;
  const size_t rest = count - first;
  return {nullptr, values + first, static_cast<uint32_t>(first),
          static_cast<uint32_t>(rest < kTileValues ? rest : kTileValues)};
}

// A warp for each tile.
__global__ void CountTilesKernel(const float* values, size_t count, size_t k, TopKWorkspace work) {
  const size_t tile = size_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (tile >= work.tiles) return;
  const TileEntries entries = EntriesOf(values, count, k, tile, work);
  const uint32_t kth = work.state->prefix[kDigits - 1];
  unsigned above = 0, equal = 0;
  for (uint32_t e = threadIdx.x % kLanes; e < entries.count; e += kLanes) {
    const uint32_t magnitude = MagnitudeBits(entries.values[e]);
    above += magnitude > kth ? 1 : 0;
    equal += magnitude == kth ? 1 : 0;
  }
  above = __reduce_add_sync(kAllLanes, above);
  equal = __reduce_add_sync(kAllLanes, equal);
  if (threadIdx.x % kLanes == 0) work.tile_totals[tile] = uint64_t{above} << 32 | equal;
}

// One block: each tile's totals become those of the tiles before it.
__global__ void ScanTilesKernel(size_t k, uint32_t* collect_from, TopKWorkspace work) {
  uint64_t before_all = 0;
  for (size_t begin = 0; begin < work.tiles; begin += kScanThreads * kScanWidth) {
    const size_t first = begin + threadIdx.x * kScanWidth;
    uint64_t totals[kScanWidth], mine = 0, all = 0;
    for (size_t j = 0; j < kScanWidth; ++j) {
      totals[j] = first + j < work.tiles ? work.tile_totals[first + j] : 0;
      mine += totals[j];
    }
    uint64_t before = before_all + SumBefore<kScanThreads>(mine, all);
    for (size_t j = 0; j < kScanWidth && first + j < work.tiles; ++j) {
      work.tile_totals[first + j] = before;
      before += totals[j];
    }
    before_all += all;
  }
  if (threadIdx.x > 0) return;
  const uint32_t kth = work.state->prefix[kDigits - 1];
  const bool guessed = Guessed(work, k);
  *collect_from = CollectFrom(guessed ? SmallestToCollect(*collect_from) : kth,
                              guessed ? work.state->found_count : k, kth, k);
}

// A warp for each tile.
__global__ void PutTilesKernel(const float* values, size_t count, size_t k, TopKWorkspace work,
                               uint32_t* top_indices, float* top_values) {
  const size_t tile = size_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (tile >= work.tiles) return;
  const TileEntries entries = EntriesOf(values, count, k, tile, work);
  const uint32_t kth = work.state->prefix[kDigits - 1];
  const uint32_t wanted_equal = work.state->rank[kDigits - 1];
  auto above_before = static_cast<uint32_t>(work.tile_totals[tile] >> 32);
  auto equal_before = static_cast<uint32_t>(work.tile_totals[tile]);
  for (uint32_t row = 0; row < entries.count; row += kLanes) {
    const uint32_t e = row + threadIdx.x % kLanes;
    const bool there = e < entries.count;
    const float value = there ? entries.values[e] : 0.0f;
    const bool above = there && MagnitudeBits(value) > kth;
    const bool equal = there && MagnitudeBits(value) == kth;
    const unsigned all_above = __ballot_sync(kAllLanes, above);
    const unsigned all_equal = __ballot_sync(kAllLanes, equal);
    const uint32_t equal_rank =
        equal_before + static_cast<unsigned>(__popc(all_equal & LanesBefore()));
    if (above || (equal && equal_rank < wanted_equal)) {
      const uint32_t at = above_before + static_cast<unsigned>(__popc(all_above & LanesBefore())) +
                          (equal_rank < wanted_equal ? equal_rank : wanted_equal);
      top_indices[at] = entries.Index(e);
      top_values[at] = value;
    }
    above_before += static_cast<unsigned>(__popc(all_above));
    equal_before += static_cast<unsigned>(__popc(all_equal));
  }
}

Status Select(const SelectFrom& from, const IndexedValues& top, uint32_t* collect_from,
              std::span<std::byte> workspace, const Stream& stream) {
  const size_t k = top.indices.size();
  const TopKWorkspace work(from.count, k, workspace.data());
  const Grid warp_a_tile = {(work.tiles + kWarps - 1) / kWarps, kTileThreads};
  const Grid digits = {std::min(work.tiles, kMostDigitBlocks), kTileThreads};
  Status status = Clear(std::as_writable_bytes(std::span(work.state, 1)), stream);
  if (status.ok()) status = CollectTiles(from, collect_from, work, stream);
  for (int digit = 0; digit < kDigits && status.ok(); ++digit) {
    status = Launch("find a digit of the k-th", DigitKernel, digits, stream, from.values,
                    from.count, k, digit, work);
  }
  if (status.ok()) {
    status = Launch("count the top k", CountTilesKernel, warp_a_tile, stream, from.values,
                    from.count, k, work);
  }
  if (status.ok()) {
    status = Launch("place the top k", ScanTilesKernel, {1, kScanThreads}, stream, k, collect_from,
                    work);
  }
  if (!status.ok()) return status;
  return Launch("put the top k", PutTilesKernel, warp_a_tile, stream, from.values, from.count, k,
                work, top.indices.data(), top.values.data());
}

}  // namespace

size_t TopKWorkspaceBytes(size_t count, size_t k) { return TopKWorkspace(count, k, nullptr).bytes; }

Status SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t* collect_from,
                  std::span<std::byte> workspace, const Stream& stream) {
  if (top.indices.empty()) return {};
  // Nothing is added, so nothing is written.
  auto* const from = const_cast<float*>(values.data());
  return Select({nullptr, from, values.size()}, top, collect_from, workspace, stream);
}

Status AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                        const IndexedValues& top, uint32_t* collect_from,
                        std::span<std::byte> workspace, const Stream& stream) {
  if (top.indices.empty()) return Add(gradient, values, stream);
  return Select({gradient.data(), values.data(), values.size()}, top, collect_from, workspace,
                stream);
}

}  // namespace thinwire::kernels::cuda
