#include "kernels/cuda/elias_fano.h"

#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

// Bits 8 * byte to 8 * byte + 7 of the low part.
__device__ uint32_t LowByte(const uint32_t* indices, size_t count, size_t low_bits, size_t byte) {
  const size_t begin = 8 * byte;
  uint32_t bits = 0;
  for (size_t i = begin / low_bits; i < count && i * low_bits < begin + 8; ++i) {
    const uint64_t low = indices[i] & ((uint64_t{1} << low_bits) - 1);
    // Where they begin within the byte, or how many of them lie before it.
    const size_t at = i * low_bits;
    bits |= static_cast<uint32_t>(at >= begin ? low << (at - begin) : low >> (begin - at));
  }
  return bits & 0xFF;
}

// The same of the upper part. Its bits rise with the indices, so the first of them in the byte is
// searched for in halves.
__device__ uint32_t UpperByte(const uint32_t* indices, size_t count, int low_bits, size_t byte) {
  const size_t begin = 8 * byte;
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = (first + end) / 2;
    if ((indices[middle] >> low_bits) + middle < begin) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  uint32_t bits = 0;
  for (size_t i = first; i < count; ++i) {
    const size_t bit = (indices[i] >> low_bits) + i - begin;
    if (bit >= 8) break;
    bits |= 1u << bit;
  }
  return bits;
}

__global__ void EliasFanoKernel(const uint32_t* indices, size_t count, EliasFanoShape shape,
                                std::byte* out) {
  const size_t byte = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (byte >= shape.low_bytes + shape.upper_bytes) return;
  const uint32_t bits = byte < shape.low_bytes
                            ? LowByte(indices, count, static_cast<size_t>(shape.low_bits), byte)
                            : UpperByte(indices, count, shape.low_bits, byte - shape.low_bytes);
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
