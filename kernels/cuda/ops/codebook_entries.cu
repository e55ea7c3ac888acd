#include "kernels/cuda/ops/codebook_entries.h"

#include <bit>
#include <cmath>

#include "kernels/cuda/block/elementwise.h"
#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/vector_access.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void PercentilesKernel(const float* sample, size_t count, float* entries,
                                  size_t entry_count) {
  const size_t j = threadIdx.x;
  if (j >= entry_count) return;
  const double fraction = 0.99 * static_cast<double>(j + 1) / static_cast<double>(entry_count);
  const double position = fraction * static_cast<double>(count - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = below + 1 < count ? below + 1 : count - 1;
  const double share = position - static_cast<double>(below);
  entries[j] = static_cast<float>((1 - share) * static_cast<double>(sample[below]) +
                                  share * static_cast<double>(sample[above]));
}

// Returns the index of the first sample that is at least LEAST, by binary search.
__device__ size_t LowerBound(const float* sample, size_t count, float least) {
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = (first + end) / 2;
    if (sample[middle] < least) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

// Runs Lloyd's algorithm in one block, with one thread per codebook entry. Between iterations the
// entries are in shared memory.
__global__ void LloydKernel(const float* sample, size_t count, int iterations, float* entries,
                            size_t entry_count) {
  __shared__ float entry[kMaxEntries];
  // For each entry, the index after the last sample that is nearer to it than to the next entry.
  __shared__ size_t ends[kMaxEntries];
  const size_t mine = threadIdx.x;
  const bool active = mine < entry_count;
  if (active) entry[mine] = entries[mine];
  __syncthreads();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (active) {
      ends[mine] = mine + 1 == entry_count
                       ? count
                       : LowerBound(sample, count, 0.5f * entry[mine] + 0.5f * entry[mine + 1]);
    }
    __syncthreads();
    // ends[e] is the index after the last sample that is nearest to table entry e. SAMPLE is
    // sorted, so the samples nearest to entry e begin where those of entry e - 1 end. An end is
    // found by comparing samples with the midpoint of two entries. The midpoint of subnormal floats
    // is rounded, so an end may be below the end of a lower entry; the samples of an entry
    // therefore begin at the largest end of all lower entries.
    size_t begin = 0;
    for (size_t e = 0; active && e < mine; ++e) begin = ends[e] > begin ? ends[e] : begin;
    double sum = 0;
    for (size_t i = begin; active && i < ends[mine]; ++i) sum += static_cast<double>(sample[i]);
    if (active && ends[mine] > begin) {
      entry[mine] = static_cast<float>(sum / static_cast<double>(ends[mine] - begin));
    }
    __syncthreads();
  }
  if (active) entries[mine] = entry[mine];
}

constexpr int kLogEntries = 8;
constexpr float kSmallestFraction = 1.0f / 256;
constexpr uint32_t kMagnitudeMask = 0x7FFFFFFF;

// Finds the largest magnitude and the smallest nonzero magnitude m as integers. Stores m as its
// complement kMagnitudeMask - m, so both results are maxima whose initial value is 0.
struct ExtremesOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t, const Pack<float, N>& value) {
    for (int j = 0; j < N; ++j) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(value.at[j]) & kMagnitudeMask;
      const uint32_t complement = magnitude == 0 ? 0 : kMagnitudeMask - magnitude;
      if (magnitude > largest) largest = magnitude;
      if (complement > largest_complement) largest_complement = complement;
    }
  }
  bool aligned() const { return IsAligned(values, kPackSize * sizeof(float)); }

  const float* values;
  uint32_t largest = 0;
  uint32_t largest_complement = 0;
};

__global__ void ExtremesKernel(ExtremesOp op, size_t count, bool aligned, uint32_t* words) {
  ApplyToTile(op, count, aligned);
  const uint32_t largest = __reduce_max_sync(~0u, op.largest);
  const uint32_t largest_complement = __reduce_max_sync(~0u, op.largest_complement);
  if (threadIdx.x % 32 == 0) {
    atomicMax(&words[0], largest);
    atomicMax(&words[1], largest_complement);
  }
}

__device__ float EighthPower(float ratio) {
  const float fourth = ratio * ratio * (ratio * ratio);
  return fourth * fourth;
}

__device__ float RatioOf(int b) { return 1.0f - static_cast<float>(b) / 256.0f; }

// Computes the entries of FitLogEntries() in one thread, because each step of the loops depends on
// the previous step.
__global__ void LogEntriesKernel(const uint32_t* words, std::byte* head, float* entries) {
  const float largest = std::bit_cast<float>(words[0]);
  const float found = words[1] == 0 ? largest : std::bit_cast<float>(kMagnitudeMask - words[1]);
  const float least = largest * kSmallestFraction;
  const float smallest = found < least ? least : found;
  int b = 0;
  while (b < 255 && largest * EighthPower(RatioOf(b)) > smallest) ++b;
  const float ratio = RatioOf(b);
  uint32_t bits = std::bit_cast<uint32_t>(largest * std::sqrt(ratio));
  // The head of the payload stores the upper two bytes of the largest table entry. Rounds the entry
  // to the nearest float that two bytes can store; if that float were infinity, truncates instead.
  if (bits < 0x7F7F8000) bits += 0x8000;
  head[0] = static_cast<std::byte>(bits >> 16);
  head[1] = static_cast<std::byte>(bits >> 24);
  head[2] = static_cast<std::byte>(b);
  float magnitude = std::bit_cast<float>(bits & 0xFFFF0000);
  for (int c = kLogEntries - 1; c >= 0; --c) {
    entries[c] = magnitude;
    magnitude *= ratio;
  }
}

__global__ void SignedTableKernel(const float* magnitudes, size_t half, std::byte* numbers,
                                  float* table, float* thresholds) {
  const size_t i = threadIdx.x;
  if (i >= half) return;
  const float mine = magnitudes[i];
  table[i] = mine;
  table[half + i] = -mine;
  if (i + 1 < half) thresholds[i] = 0.5f * mine + 0.5f * magnitudes[i + 1];
  if (numbers != nullptr) StoreFloatUnaligned(mine, numbers, i);
}

}  // namespace

Status Percentiles(std::span<const float> sample, std::span<float> entries, const Stream& stream) {
  return Launch("compute percentiles", PercentilesKernel, {1, unsigned{kMaxEntries}}, stream,
                sample.data(), sample.size(), entries.data(), entries.size());
}

Status RefineEntries(std::span<const float> sample, int iterations, std::span<float> entries,
                     const Stream& stream) {
  return Launch("refine entries", LloydKernel, {1, unsigned{kMaxEntries}}, stream, sample.data(),
                sample.size(), iterations, entries.data(), entries.size());
}

Status FitLogEntries(std::span<const float> values, std::span<uint32_t, 2> words, std::byte* head,
                     std::span<float, 8> entries, const Stream& stream) {
  const ExtremesOp op{values.data()};
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(words), stream));
  RETURN_IF_CUDA_ERROR(Launch("find extreme magnitudes", ExtremesKernel,
                              OneBlockPerTile(values.size()), stream, op, values.size(),
                              op.aligned(), words.data()));
  return Launch("fit log entries", LogEntriesKernel, {1, 1}, stream, words.data(), head,
                entries.data());
}

Status MakeSignedTable(std::span<const float> magnitudes, std::byte* numbers,
                       std::span<float> table, std::span<float> thresholds, const Stream& stream) {
  return Launch("make a signed table", SignedTableKernel, {1, unsigned{kMaxEntries}}, stream,
                magnitudes.data(), magnitudes.size(), numbers, table.data(), thresholds.data());
}

}  // namespace thinwire::kernels::cuda
