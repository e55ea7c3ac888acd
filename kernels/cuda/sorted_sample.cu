#include "kernels/cuda/sorted_sample.h"

#include <bit>
#include <cstddef>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/in_order.h"
#include "kernels/cuda/launch.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kOthers = 1024;  // that a block compares its own with

__global__ void DrawKernel(const float* values, uint64_t count, uint64_t sample_count,
                           uint32_t* drawn) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= sample_count) return;
  const uint64_t begin = i * count / sample_count, end = (i + 1) * count / sample_count;
  const float value = values[begin + MixBits(i) % (end - begin)];
  drawn[i] = std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
}

// A block has kThreads of the numbers, and adds to the rank of each how many of its kOthers are
// smaller. Of equal ones the first is the smaller.
__global__ void RankKernel(const uint32_t* drawn, size_t count, size_t blocks_of_others,
                           uint32_t* ranks) {
  __shared__ uint32_t others[kOthers];
  const size_t first_other = blockIdx.x % blocks_of_others * kOthers;
  const size_t rest = count - first_other;
  const size_t other_count = rest < kOthers ? rest : kOthers;
  for (size_t j = threadIdx.x; j < other_count; j += kThreads) others[j] = drawn[first_other + j];
  __syncthreads();
  const size_t i = blockIdx.x / blocks_of_others * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint32_t mine = drawn[i];
  // Up to here an equal one is before this one.
  const size_t before = i <= first_other ? 0 : i - first_other;
  const size_t middle = before < other_count ? before : other_count;
  uint32_t smaller = 0;
  for (size_t j = 0; j < middle; ++j) smaller += others[j] <= mine ? 1 : 0;
  for (size_t j = middle; j < other_count; ++j) smaller += others[j] < mine ? 1 : 0;
  atomicAdd(&ranks[i], smaller);
}

__global__ void PlaceKernel(const uint32_t* drawn, const uint32_t* ranks, size_t count,
                            float* sample) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) sample[ranks[i]] = std::bit_cast<float>(drawn[i]);
}

}  // namespace

Status SortedSample(std::span<const float> values, std::span<float> sample,
                    std::span<uint32_t> words, const Stream& stream) {
  const size_t count = sample.size();
  const std::span<uint32_t> drawn = words.first(count), ranks = words.subspan(count);
  const size_t blocks_of_others = (count + kOthers - 1) / kOthers;
  const Grid all_pairs = {OneThreadEach(count, kThreads).block_count * blocks_of_others, kThreads};
  return InOrder([&] { return Clear(std::as_writable_bytes(ranks), stream); },
                 [&] {
                   return Launch("draw a sample", DrawKernel, OneThreadEach(count), stream,
                                 values.data(), uint64_t{values.size()}, uint64_t{count},
                                 drawn.data());
                 },
                 [&] {
                   return Launch("rank a sample", RankKernel, all_pairs, stream, drawn.data(),
                                 count, blocks_of_others, ranks.data());
                 },
                 [&] {
                   return Launch("sort a sample", PlaceKernel, OneThreadEach(count), stream,
                                 drawn.data(), ranks.data(), count, sample.data());
                 });
}

}  // namespace thinwire::kernels::cuda
