#include "kernels/cuda/ops/stratified_sample.h"

#include <bit>

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kComparedPerBlock = 1024;

// Divides the index range 0 .. UNIVERSE - 1 into COUNT parts and returns the index that is drawn
// from part I.
__device__ uint64_t DrawnIndex(uint64_t draw, uint64_t universe, uint64_t count, uint64_t i) {
  const uint64_t begin = i * universe / count, end = (i + 1) * universe / count;
  return begin + MixBits(draw + i) % (end - begin);
}

__global__ void DrawIndicesKernel(uint64_t draw, uint64_t universe, uint64_t count,
                                  uint32_t* indices) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) indices[i] = static_cast<uint32_t>(DrawnIndex(draw, universe, count, i));
}

__global__ void DrawMagnitudesKernel(const float* values, uint64_t count, uint64_t sample_count,
                                     uint32_t* magnitudes) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= sample_count) return;
  const float value = values[DrawnIndex(0, count, sample_count, i)];
  magnitudes[i] = std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
}

// Computes the rank of each element of a sample. A block compares kThreads elements with
// kComparedPerBlock other elements, and adds to the rank of each of the kThreads elements the
// number of other elements that are smaller. Among equal elements, the element with the lower index
// counts as smaller.
__global__ void RankKernel(const uint32_t* magnitudes, size_t count, size_t blocks_of_others,
                           uint32_t* ranks) {
  __shared__ uint32_t others[kComparedPerBlock];
  const size_t first_other = blockIdx.x % blocks_of_others * kComparedPerBlock;
  const size_t left = count - first_other;
  const size_t other_count = left < kComparedPerBlock ? left : kComparedPerBlock;
  for (size_t j = threadIdx.x; j < other_count; j += kThreads) {
    others[j] = magnitudes[first_other + j];
  }
  __syncthreads();
  const size_t i = blockIdx.x / blocks_of_others * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint32_t mine = magnitudes[i];
  // The elements of OTHERS before position MIDDLE have a lower index than element I.
  const size_t before = i <= first_other ? 0 : i - first_other;
  const size_t middle = before < other_count ? before : other_count;
  uint32_t smaller = 0;
  for (size_t j = 0; j < middle; ++j) smaller += others[j] <= mine ? 1 : 0;
  for (size_t j = middle; j < other_count; ++j) smaller += others[j] < mine ? 1 : 0;
  atomicAdd(&ranks[i], smaller);
}

__global__ void PlaceKernel(const uint32_t* magnitudes, const uint32_t* ranks, size_t count,
                            float* sample) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) sample[ranks[i]] = std::bit_cast<float>(magnitudes[i]);
}

}  // namespace

Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream) {
  return Launch("draw indices", DrawIndicesKernel, OneThreadPerItem(indices.size()), stream, draw,
                uint64_t{universe}, uint64_t{indices.size()}, indices.data());
}

Status SortedSample(std::span<const float> values, std::span<float> sample,
                    std::span<uint32_t> words, const Stream& stream) {
  const size_t count = sample.size();
  const std::span<uint32_t> magnitudes = words.first(count), ranks = words.subspan(count);
  const size_t blocks_of_others = (count + kComparedPerBlock - 1) / kComparedPerBlock;
  const Grid all_pairs = {OneThreadPerItem(count, kThreads).block_count * blocks_of_others,
                          kThreads};
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(ranks), stream));
  RETURN_IF_CUDA_ERROR(Launch("draw a sample", DrawMagnitudesKernel, OneThreadPerItem(count),
                              stream, values.data(), uint64_t{values.size()}, uint64_t{count},
                              magnitudes.data()));
  RETURN_IF_CUDA_ERROR(Launch("rank a sample", RankKernel, all_pairs, stream, magnitudes.data(),
                              count, blocks_of_others, ranks.data()));
  return Launch("sort a sample", PlaceKernel, OneThreadPerItem(count), stream, magnitudes.data(),
                ranks.data(), count, sample.data());
}

}  // namespace thinwire::kernels::cuda
