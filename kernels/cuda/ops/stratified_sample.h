// Stratified random sampling on the GPU: the index range 0 .. n - 1 is divided into k nearly equal
// parts, and one index is drawn from each part. `draw` is the seed:
//
//   index i = begin + MixBits(draw + i) mod (end - begin),  begin = i n / k,  end = (i + 1) n / k
//
//   DrawIndices    writes the indices, which are in ascending order (codec randomk)
//   SortedSample   draws indices with seed 0 and writes the magnitudes at these indices, sorted
//
// The CPU versions, common/codec/sparse/drawn_indices.h and common/codec/codebook/fitted_table.h,
// compute the same bits. SortedSample ranks each element by comparing it with all other elements.
// The k^2 comparisons (16 million for k = 4096) are independent of each other, so the GPU executes
// many at the same time. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_
#define THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// Fills INDICES, an array in GPU memory. REQUIRES: indices.size() <= universe < 2^32.
Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream);

// Fills SAMPLE. WORDS is workspace. REQUIRES: all arrays are in GPU memory; sample.size() <=
// values.size(); words.size() == 2 * sample.size().
Status SortedSample(std::span<const float> values, std::span<float> sample,
                    std::span<uint32_t> words, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_
