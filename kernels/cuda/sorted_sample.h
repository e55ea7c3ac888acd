// SortedSample: magnitudes of an array, one drawn from each of as many equal parts, rising.
//
//   number i before sorting = |values[begin + MixBits(i) mod (end - begin)]|,
//   begin = i n / k,  end = (i + 1) n / k
//
// The host's twin sorts by passes over digits (common/codec/table.cc). Here every number counts the
// smaller ones, k^2 comparisons that need nothing of each other: of 4096, 16 million. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SORTED_SAMPLE_H_
#define THINWIRE_KERNELS_CUDA_SORTED_SAMPLE_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// Fills SAMPLE. REQUIRES: all on the device; sample.size() <= values.size(); words.size() == 2 *
// sample.size(), to work in.
Status SortedSample(std::span<const float> values, std::span<float> sample,
                    std::span<uint32_t> words, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SORTED_SAMPLE_H_
