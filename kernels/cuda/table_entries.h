// The entries of table_N and lloyd_N, from a sorted sample of magnitudes (sorted_sample.h): what
// common/codec/table.cc finds, to the bit.
//
//   Percentiles     entry j = the 99 (j + 1) / n percentile, between the nearest two in proportion
//   RefineEntries   each entry becomes the mean of the samples nearest to it (Lloyd 1982), some
//                   times over; a thread for each, since a sum has an order
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_TABLE_ENTRIES_H_
#define THINWIRE_KERNELS_CUDA_TABLE_ENTRIES_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kMostEntries = 128;

// For both: REQUIRES: all on the device; SAMPLE rises and is not empty; entries.size() <=
// kMostEntries.

Status Percentiles(std::span<const float> sample, std::span<float> entries, const Stream& stream);

// REQUIRES: ENTRIES do not fall.
Status RefineEntries(std::span<const float> sample, int times, std::span<float> entries,
                     const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TABLE_ENTRIES_H_
