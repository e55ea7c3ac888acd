#include "kernels/cuda/ops/top_k.h"

#include <algorithm>

#include "kernels/cuda/block/block_scan.h"
#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/tile.h"
#include "kernels/cuda/block/vector_access.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/workspace_layout.h"
#include "kernels/select/top_k.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kAllLanes = ~0u;
constexpr unsigned kWarps = kTileThreads / kLanes;

// Radix select finds the 31 bits of the k-th largest magnitude in three passes. Each pass finds one
// digit: the highest 11 bits, then 10 bits, then the lowest 10 bits.
constexpr int kDigits = 3;
constexpr int DigitBits(int digit) { return digit == 0 ? 11 : 10; }
constexpr int DigitShift(int digit) { return 20 - 10 * digit; }
constexpr unsigned kMaxBins = 1 << 11;

// Results that one kernel launch stores for later launches. Zeroed before the first launch.
struct TopKState {
  uint32_t candidate_count;       // number of candidates found; may exceed the capacity
  uint32_t blocks_done[kDigits];  // number of blocks that have updated the histogram
  uint32_t prefix[kDigits];       // the k-th largest magnitude, but digits not yet found are 0
  // The rank of the k-th largest magnitude among the magnitudes that begin with the digits in
  // `prefix`.
  uint32_t rank[kDigits];
  uint32_t histogram[kDigits][kMaxBins];  // number of magnitudes per digit value
};

// The arrays of a selection, in memory that the caller provides.
struct TopKWorkspace {
  TopKWorkspace(size_t count, size_t k, std::byte* memory)
      : tiles((count + kTileValues - 1) / kTileValues), capacity(CandidateCapacity(count, k)) {
    WorkspaceLayout layout(memory);
    state = layout.Append<TopKState>(1).data();
    tile_begin = layout.Append<uint32_t>(tiles).data();
    tile_count = layout.Append<uint32_t>(tiles).data();
    tile_selected = layout.Append<uint64_t>(tiles).data();
    candidate_indices = layout.Append<uint32_t>(capacity).data();
    candidate_values = layout.Append<float>(capacity).data();
    bytes = layout.bytes();
  }

  TopKState* state = nullptr;
  // For each tile, the position of its first candidate and the number of its candidates. Within a
  // tile, candidates are in ascending order of their indices. The candidate arrays contain the
  // tiles in no particular order.
  uint32_t* tile_begin = nullptr;
  uint32_t* tile_count = nullptr;
  // Two counts per tile, 32 bits each: magnitudes above the k-th magnitude (upper half) and
  // magnitudes equal to the k-th magnitude (lower half). ScanTilesKernel replaces the counts by
  // their sums over all previous tiles.
  uint64_t* tile_selected = nullptr;
  uint32_t* candidate_indices = nullptr;
  float* candidate_values = nullptr;

  size_t tiles = 0;
  size_t capacity = 0;  // maximum number of candidates
  size_t bytes = 0;
};

// The array to select from. If GRADIENT is not null, the selection first adds it to VALUES.
struct Source {
  const float* gradient;
  float* values;
  size_t count;
};

// Returns the cutoff of the top-k selection: values of at least this magnitude become candidates.
// THRESHOLD is a prediction of the k-th largest magnitude, made from the previous step. Without a
// prediction, THRESHOLD is 0; the returned cutoff then exceeds all magnitudes, and no value becomes
// a candidate.
constexpr uint32_t SmallestToCollect(uint32_t threshold) {
  if (threshold == 0) return 0x80000000;
  return threshold < 0x7FFFFFFF ? threshold : 0x7FFFFFFF;
}

// Pass 1 adds the gradient and collects the candidates, with one block per tile. A warp handles
// kWarpValues adjacent values, in kPacksPerThread rows of one pack per lane.

constexpr size_t kRowValues = kLanes * kPackSize;
constexpr size_t kWarpValues = kRowValues * kPacksPerThread;

struct ThreadValues {
  Pack<float, kPackSize> row[kPacksPerThread];
};

// Loads the calling thread's values of a full tile. FIRST is the index of the thread's first value.
// If kAdds is true, adds the gradient and writes the sums back.
template <bool kAdds>
__device__ ThreadValues LoadSums(const Source& from, size_t first) {
  ThreadValues sums;
#pragma unroll
  for (int u = 0; u < kPacksPerThread; ++u) {
    sums.row[u] = LoadPack<float, kPackSize>(from.values + first + u * kRowValues);
  }
  if constexpr (kAdds) {
    ThreadValues gradient;
#pragma unroll
    for (int u = 0; u < kPacksPerThread; ++u) {
      gradient.row[u] = LoadPack<float, kPackSize>(from.gradient + first + u * kRowValues);
    }
#pragma unroll
    for (int u = 0; u < kPacksPerThread; ++u) {
      for (int j = 0; j < kPackSize; ++j) sums.row[u].at[j] += gradient.row[u].at[j];
      StorePack(sums.row[u], from.values + first + u * kRowValues);
    }
  }
  return sums;
}

// Like LoadSums(), but value by value, for unaligned arrays and the last tile. Values beyond the
// end of the array are 0.
template <bool kAdds>
__device__ ThreadValues LoadSumsOfPartialTile(const Source& from, size_t first) {
  ThreadValues sums;
#pragma unroll
  for (int u = 0; u < kPacksPerThread; ++u) {
    for (int j = 0; j < kPackSize; ++j) {
      const size_t i = first + u * kRowValues + static_cast<size_t>(j);
      sums.row[u].at[j] = 0;
      if (i >= from.count) continue;
      sums.row[u].at[j] = from.values[i];
      if constexpr (kAdds) from.values[i] = sums.row[u].at[j] += from.gradient[i];
    }
  }
  return sums;
}

// Returns a mask of the thread's values whose magnitude is at least SMALLEST. Bit kPackSize * u + j
// stands for value j of row u.
__device__ uint32_t CandidateMask(const ThreadValues& sums, uint32_t smallest, size_t first,
                                  size_t count) {
  uint32_t mask = 0;
#pragma unroll
  for (int u = 0; u < kPacksPerThread; ++u) {
    for (int j = 0; j < kPackSize; ++j) {
      const bool in_range = first + u * kRowValues + static_cast<size_t>(j) < count;
      const bool qualifies = in_range && MagnitudeBits(sums.row[u].at[j]) >= smallest;
      mask |= static_cast<uint32_t>(qualifies) << (kPackSize * u + j);
    }
  }
  return mask;
}

// Reserves space for the tile's candidates and sets BEGIN to the position of this space. Called by
// thread 0. WARP_COUNTS contains the number of candidates of each warp of the block.
__device__ void ReserveForTile(const uint32_t* warp_counts, const TopKWorkspace& work,
                               uint32_t* begin) {
  uint32_t count = 0;
  for (unsigned w = 0; w < kWarps; ++w) count += warp_counts[w];
  *begin = count == 0 ? 0 : atomicAdd(&work.state->candidate_count, count);
  work.tile_begin[blockIdx.x] = *begin;
  work.tile_count[blockIdx.x] = count;
}

// Writes the warp's candidates to positions AT, AT + 1, ... in ascending order of their indices: by
// row, then by lane, then by position within the pack.
__device__ void StoreCandidates(const ThreadValues& sums, uint32_t mask, size_t first, size_t at,
                                const TopKWorkspace& work) {
  const unsigned lanes_before = (1u << threadIdx.x % kLanes) - 1;
#pragma unroll
  for (int u = 0; u < kPacksPerThread; ++u) {
    const uint32_t row_mask = mask >> (kPackSize * u) & ((1u << kPackSize) - 1);
    size_t position = at;
    for (int j = 0; j < kPackSize; ++j) {
      const unsigned ballot = __ballot_sync(kAllLanes, (row_mask >> j & 1) != 0);
      position += static_cast<unsigned>(__popc(ballot & lanes_before));
      at += static_cast<unsigned>(__popc(ballot));
    }
    for (int j = 0; j < kPackSize; ++j) {
      if ((row_mask >> j & 1) == 0) continue;
      if (position < work.capacity) {
        work.candidate_indices[position] =
            static_cast<uint32_t>(first + u * kRowValues + static_cast<size_t>(j));
        work.candidate_values[position] = sums.row[u].at[j];
      }
      ++position;
    }
  }
}

template <bool kAdds>
__global__ void CollectKernel(Source from, bool aligned, const uint32_t* threshold,
                              TopKWorkspace work) {
  __shared__ uint32_t warp_counts[kWarps];
  __shared__ uint32_t tile_begin;
  const unsigned warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const size_t first = blockIdx.x * kTileValues + warp * kWarpValues + lane * kPackSize;
  const bool full = aligned && (blockIdx.x + size_t{1}) * kTileValues <= from.count;
  const ThreadValues sums =
      full ? LoadSums<kAdds>(from, first) : LoadSumsOfPartialTile<kAdds>(from, first);
  const uint32_t mask = CandidateMask(sums, SmallestToCollect(*threshold), first, from.count);
  const uint32_t count = __reduce_add_sync(kAllLanes, static_cast<unsigned>(__popc(mask)));
  if (lane == 0) warp_counts[warp] = count;
  __syncthreads();
  if (threadIdx.x == 0) ReserveForTile(warp_counts, work, &tile_begin);
  __syncthreads();
  if (count == 0) return;
  size_t at = tile_begin;
  for (unsigned w = 0; w < warp; ++w) at += warp_counts[w];
  StoreCandidates(sums, mask, first, at, work);
}

// Passes 2 to 4 find the k-th largest magnitude by radix select, one digit per pass.

// Maximum number of blocks of a pass: enough to occupy any GPU, but few enough that zeroing and
// merging one histogram per block takes little time.
constexpr size_t kMaxDigitBlocks = 1024;

// Returns whether the candidates contain the k values to select. If not, the later passes read the
// whole array.
__device__ bool CandidatesSuffice(const TopKWorkspace& work, size_t k) {
  return work.state->candidate_count >= k && work.state->candidate_count <= work.capacity;
}

// Among the magnitudes whose higher digits equal those of PREFIX, counts how often each value of
// digit DIGIT occurs, and adds the counts to HISTOGRAM. BINS is workspace in shared memory.
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

// Finds the current radix digit of the RANK-th largest magnitude. Called by all threads of the
// block that updated the histogram last. Thread 0 examines the histogram bins of the largest digit
// values, thread 1 the next lower bins, and so on. The histogram is volatile because other blocks
// wrote it, and this block must not read outdated counts from its cache.
__device__ void FindDigit(TopKState* state, int digit, uint32_t prefix, uint32_t rank) {
  const volatile uint32_t* histogram = state->histogram[digit];
  const unsigned bins_per_thread = (1u << DigitBits(digit)) / kTileThreads;
  const unsigned top = (kTileThreads - threadIdx.x) * bins_per_thread;
  uint32_t mine = 0, total = 0;
  for (unsigned b = 1; b <= bins_per_thread; ++b) mine += histogram[top - b];
  uint32_t above = BlockExclusiveSum<kTileThreads>(mine, total);
  if (rank <= above || rank > above + mine) return;
  unsigned bin = top - 1;
  for (; rank > above + histogram[bin]; --bin) above += histogram[bin];
  state->prefix[digit] = prefix | bin << DigitShift(digit);
  state->rank[digit] = rank - above;
}

__global__ void DigitKernel(const float* values, size_t count, size_t k, int digit,
                            TopKWorkspace work) {
  __shared__ uint32_t bins[kMaxBins];
  __shared__ bool is_last;
  TopKState* const state = work.state;
  const uint32_t prefix = digit == 0 ? 0 : state->prefix[digit - 1];
  const uint32_t rank = digit == 0 ? static_cast<uint32_t>(k) : state->rank[digit - 1];
  const bool suffice = CandidatesSuffice(work, k);
  CountDigits(suffice ? work.candidate_values : values, suffice ? state->candidate_count : count,
              digit, prefix, bins, state->histogram[digit]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&state->blocks_done[digit], 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  FindDigit(state, digit, prefix, rank);
}

// Passes 5 to 7 count the selected values of each tile, compute prefix sums of the counts, and
// write the selected values.

constexpr unsigned kScanThreads = 1024;
constexpr size_t kTilesPerScanThread = 4;

__device__ unsigned LanesBefore() { return (1u << threadIdx.x % kLanes) - 1; }

// The values of one tile from which the kernels select, in ascending order of their indices. If the
// candidates contain all k values to select, these are the candidates of the tile, with their
// indices. Otherwise they are all values of the tile: `first` is the index of the first value, and
// `indices` is null.
struct TileEntries {
  const uint32_t* indices;
  const float* values;
  uint32_t first;
  uint32_t count;

  __device__ uint32_t Index(uint32_t e) const {
    return indices == nullptr ? first + e : indices[e];
  }
};

__device__ TileEntries EntriesOf(const float* values, size_t count, size_t k, size_t tile,
                                 const TopKWorkspace& work) {
  if (CandidatesSuffice(work, k)) {
    const uint32_t begin = work.tile_begin[tile];
    return {work.candidate_indices + begin, work.candidate_values + begin, 0,
            work.tile_count[tile]};
  }
  const size_t first = tile * kTileValues;
  const size_t left = count - first;
  return {nullptr, values + first, static_cast<uint32_t>(first),
          static_cast<uint32_t>(left < kTileValues ? left : kTileValues)};
}

// Counts each tile's magnitudes above and equal to the k-th magnitude, with one warp per tile.
__global__ void CountSelectedKernel(const float* values, size_t count, size_t k,
                                    TopKWorkspace work) {
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
  if (threadIdx.x % kLanes == 0) work.tile_selected[tile] = uint64_t{above} << 32 | equal;
}

// Replaces each tile's counts by their sums over all previous tiles, and predicts the next
// threshold. Runs in one block.
__global__ void ScanTilesKernel(size_t k, uint32_t* threshold, TopKWorkspace work) {
  uint64_t before_all = 0;
  for (size_t begin = 0; begin < work.tiles; begin += kScanThreads * kTilesPerScanThread) {
    const size_t first = begin + threadIdx.x * kTilesPerScanThread;
    uint64_t counts[kTilesPerScanThread], mine = 0, all = 0;
    for (size_t j = 0; j < kTilesPerScanThread; ++j) {
      counts[j] = first + j < work.tiles ? work.tile_selected[first + j] : 0;
      mine += counts[j];
    }
    uint64_t before = before_all + BlockExclusiveSum<kScanThreads>(mine, all);
    for (size_t j = 0; j < kTilesPerScanThread && first + j < work.tiles; ++j) {
      work.tile_selected[first + j] = before;
      before += counts[j];
    }
    before_all += all;
  }
  if (threadIdx.x > 0) return;
  const uint32_t kth = work.state->prefix[kDigits - 1];
  const bool suffice = CandidatesSuffice(work, k);
  *threshold = NextThreshold(suffice ? SmallestToCollect(*threshold) : kth,
                             suffice ? work.state->candidate_count : k, kth, k);
}

// Writes the selected values, with one warp per tile. Selects all magnitudes above the k-th largest
// magnitude. Of the magnitudes equal to it, selects the rank[kDigits - 1] magnitudes with the
// lowest indices. Together these are k values.
__global__ void StoreSelectedKernel(const float* values, size_t count, size_t k, TopKWorkspace work,
                                    uint32_t* top_indices, float* top_values) {
  const size_t tile = size_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (tile >= work.tiles) return;
  const TileEntries entries = EntriesOf(values, count, k, tile, work);
  const uint32_t kth = work.state->prefix[kDigits - 1];
  const uint32_t wanted_equal = work.state->rank[kDigits - 1];
  auto above_before = static_cast<uint32_t>(work.tile_selected[tile] >> 32);
  auto equal_before = static_cast<uint32_t>(work.tile_selected[tile]);
  for (uint32_t row = 0; row < entries.count; row += kLanes) {
    const uint32_t e = row + threadIdx.x % kLanes;
    const bool in_range = e < entries.count;
    const float value = in_range ? entries.values[e] : 0.0f;
    const bool above = in_range && MagnitudeBits(value) > kth;
    const bool equal = in_range && MagnitudeBits(value) == kth;
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

Status Select(const Source& from, const IndexedValues& top, uint32_t* threshold,
              std::span<std::byte> workspace, const Stream& stream) {
  const size_t k = top.indices.size();
  const TopKWorkspace work(from.count, k, workspace.data());
  constexpr size_t kBytes = kPackSize * sizeof(float);
  const bool aligned = IsAligned(from.gradient, kBytes) && IsAligned(from.values, kBytes);
  const Grid block_per_tile = {work.tiles, kTileThreads};
  const Grid warp_per_tile = {(work.tiles + kWarps - 1) / kWarps, kTileThreads};
  const Grid digit_blocks = {std::min(work.tiles, kMaxDigitBlocks), kTileThreads};
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(std::span(work.state, 1)), stream));
  RETURN_IF_CUDA_ERROR(Launch("top-k: collect candidates",
                              from.gradient == nullptr ? CollectKernel<false> : CollectKernel<true>,
                              block_per_tile, stream, from, aligned, threshold, work));
  for (int digit = 0; digit < kDigits; ++digit) {
    RETURN_IF_CUDA_ERROR(Launch("top-k: find a digit of the k-th magnitude", DigitKernel,
                                digit_blocks, stream, from.values, from.count, k, digit, work));
  }
  RETURN_IF_CUDA_ERROR(Launch("top-k: count selected values", CountSelectedKernel, warp_per_tile,
                              stream, from.values, from.count, k, work));
  RETURN_IF_CUDA_ERROR(
      Launch("top-k: scan tiles", ScanTilesKernel, {1, kScanThreads}, stream, k, threshold, work));
  return Launch("top-k: store selected values", StoreSelectedKernel, warp_per_tile, stream,
                from.values, from.count, k, work, top.indices.data(), top.values.data());
}

}  // namespace

size_t TopKWorkspaceBytes(size_t count, size_t k) { return TopKWorkspace(count, k, nullptr).bytes; }

Status SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t* threshold,
                  std::span<std::byte> workspace, const Stream& stream) {
  if (top.indices.empty()) return {};
  // If there is no gradient, the kernels do not write to VALUES, so const_cast is safe.
  auto* const from = const_cast<float*>(values.data());
  return Select({nullptr, from, values.size()}, top, threshold, workspace, stream);
}

Status AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                        const IndexedValues& top, uint32_t* threshold,
                        std::span<std::byte> workspace, const Stream& stream) {
  if (top.indices.empty()) return Add(gradient, values, stream);
  return Select({gradient.data(), values.data(), values.size()}, top, threshold, workspace, stream);
}

}  // namespace thinwire::kernels::cuda
