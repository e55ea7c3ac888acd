// Codebooks fitted to an array on the GPU: the magnitudes that the codes of the codecs table_N,
// lloyd_N and log_4 stand for, in ascending order. All arrays are in GPU memory.
//
//   Percentiles       entry j of n = the 99 (j + 1) / n percentile of a sorted sample, interpolated
//   RefineEntries     Lloyd's algorithm (Lloyd 1982): entry = mean of the samples nearest to it
//   FitLogEntries     entry c = a r^(7 - c) for c < 8: a geometric series from the largest to the
//                     smallest magnitude of an array, but not below 1/256 of the largest
//   MakeSignedTable   the lookup table of signed codes, and thresholds for CodesOfMagnitudes()
//
// The CPU versions, fitted_table.h and log_ratio.cc in common/codec/codebook, compute the same
// bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_CODEBOOK_ENTRIES_H_
#define THINWIRE_KERNELS_CUDA_OPS_CODEBOOK_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kMaxEntries = 128;

// REQUIRES: SAMPLE is sorted in ascending order and not empty (SortedSample in
// stratified_sample.h); entries.size() <= kMaxEntries.
Status Percentiles(std::span<const float> sample, std::span<float> entries, const Stream& stream);

// Runs ITERATIONS of Lloyd's algorithm. An entry without a nearest sample keeps its value. One
// thread sums each entry's samples in order, so the result does not depend on the GPU. REQUIRES:
// the conditions of Percentiles(); ENTRIES are in ascending order.
Status RefineEntries(std::span<const float> sample, int iterations, std::span<float> entries,
                     const Stream& stream);

// Writes the eight entries and HEAD, the three bytes that describe them: the upper two bytes of the
// float a, then b, where r = 1 - b / 256. b is the smallest integer for which the series reaches
// down to the smallest nonzero magnitude. WORDS is workspace. REQUIRES: VALUES are finite.
Status FitLogEntries(std::span<const float> values, std::span<uint32_t, 2> words, std::byte* head,
                     std::span<float, 8> entries, const Stream& stream);

// From n magnitudes m in ascending order, writes
//   table        m[0] .. m[n-1], -m[0] .. -m[n-1]
//   thresholds   the midpoints of m[i] and m[i + 1], for i < n - 1
//   numbers      the magnitudes, as floats that may be unaligned, unless NUMBERS is null
// REQUIRES: magnitudes.size() <= kMaxEntries; table.size() == 2 n; thresholds.size() == n - 1.
Status MakeSignedTable(std::span<const float> magnitudes, std::byte* numbers,
                       std::span<float> table, std::span<float> thresholds, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_CODEBOOK_ENTRIES_H_
