#include "kernels/cuda/draws.h"

#include "kernels/cuda/launch.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr size_t kDrawsInWord = 4;

__global__ void DrawKernel(uint64_t draw, size_t count, uint16_t* draws) {
  const size_t word = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint64_t bits = MixBits(draw + word);
  for (size_t j = 0; j < kDrawsInWord; ++j) {
    const size_t i = word * kDrawsInWord + j;
    if (i < count) draws[i] = static_cast<uint16_t>(bits >> (16 * j));
  }
}

__global__ void DrawIndicesKernel(uint64_t draw, uint64_t universe, uint64_t count,
                                  uint32_t* indices) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t begin = i * universe / count, end = (i + 1) * universe / count;
  indices[i] = static_cast<uint32_t>(begin + MixBits(draw + i) % (end - begin));
}

}  // namespace

Status Draw(uint64_t draw, std::span<uint16_t> draws, const Stream& stream) {
  const size_t words = (draws.size() + kDrawsInWord - 1) / kDrawsInWord;
  return Launch("draw", DrawKernel, OneThreadEach(words), stream, draw, draws.size(), draws.data());
}

Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream) {
  return Launch("draw indices", DrawIndicesKernel, OneThreadEach(indices.size()), stream, draw,
                uint64_t{universe}, uint64_t{indices.size()}, indices.data());
}

}  // namespace thinwire::kernels::cuda
