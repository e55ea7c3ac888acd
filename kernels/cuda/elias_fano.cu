#include "kernels/cuda/elias_fano.h"

#include "kernels/cuda/index_bytes.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

struct Numbers {
  __device__ uint64_t operator()(size_t i) const { return indices[i]; }
  const uint32_t* indices;
};

struct Places {
  __device__ size_t operator()(size_t i) const { return (indices[i] >> low_bits) + i; }
  const uint32_t* indices;
  int low_bits;
};

__global__ void EliasFanoKernel(const uint32_t* indices, size_t count, EliasFanoShape shape,
                                std::byte* out) {
  const size_t byte = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (byte >= shape.low_bytes + shape.upper_bytes) return;
  const uint32_t bits =
      byte < shape.low_bytes
          ? LowByte(Numbers{indices}, count, static_cast<size_t>(shape.low_bits), byte)
          : UpperByte(Places{indices, shape.low_bits}, count, byte - shape.low_bytes);
  out[byte] = static_cast<std::byte>(bits);
}

}  // namespace

Status EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out,
                       const Stream& stream) {
  const EliasFanoShape shape = ShapeOfEliasFano(indices.size(), universe);
  return Launch("pack indices", EliasFanoKernel, OneThreadEach(shape.bytes()), stream,
                indices.data(), indices.size(), shape, out);
}

}  // namespace thinwire::kernels::cuda
