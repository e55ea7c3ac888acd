#include "kernels/cuda/draws.h"

#include "kernels/cuda/launch.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void DrawIndicesKernel(uint64_t draw, uint64_t universe, uint64_t count,
                                  uint32_t* indices) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t begin = i * universe / count, end = (i + 1) * universe / count;
  indices[i] = static_cast<uint32_t>(begin + MixBits(draw + i) % (end - begin));
}

}  // namespace

Status DrawIndices(uint64_t draw, size_t universe, std::span<uint32_t> indices,
                   const Stream& stream) {
  return Launch("draw indices", DrawIndicesKernel, OneThreadEach(indices.size()), stream, draw,
                uint64_t{universe}, uint64_t{indices.size()}, indices.data());
}

}  // namespace thinwire::kernels::cuda
