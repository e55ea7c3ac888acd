// Stratified random sampling on the GPU: 0 .. n - 1 is divided into k equal parts and one index is
// drawn from each:
//
//   index i = begin + MixBits(draw + i) mod (end - begin),  begin = i n / k,  end = (i + 1) n / k
//
//   DrawIndices    the indices themselves, which are ascending (the codec randomk)
//   SortedSample   the magnitudes of the values at the indices for draw 0, in ascending order
//
// CPU twins with the same bits: common/codec/sparse/drawn_indices.h and
// common/codec/codebook/fitted_table.h. SortedSample ranks each element by comparing it with all
// others, k^2 comparisons (16 million for k = 4096), because these are independent of each other.
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_
#define THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// Fills INDICES, in GPU memory. REQUIRES: indices.size() <= universe < 2^32.
Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream);

// Fills SAMPLE. WORDS is workspace. REQUIRES: all arrays are in GPU memory; sample.size() <=
// values.size(); words.size() == 2 * sample.size().
Status SortedSample(std::span<const float> values, std::span<float> sample,
                    std::span<uint32_t> words, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_STRATIFIED_SAMPLE_H_
