#include "kernels/cuda/ops/pack_bits.h"

#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/block/vector_access.h"

namespace thinwire::kernels::cuda {
namespace {

// Each thread packs one unit of eight codes.
__global__ void PackKernel(const uint8_t* codes, size_t count, int bits, std::byte* packed) {
  const size_t unit = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (unit * kCodesInUnit >= count) return;
  uint64_t word = 0;
  for (size_t j = 0; j < kCodesInUnit && unit * kCodesInUnit + j < count; ++j) {
    word |= uint64_t{codes[unit * kCodesInUnit + j]} << (static_cast<int>(j) * bits);
  }
  StorePackedUnit(word, bits, packed, unit);
}

__global__ void UnpackKernel(const std::byte* packed, size_t count, int bits, uint8_t* codes) {
  const size_t unit = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (unit * kCodesInUnit >= count) return;
  const uint64_t word = LoadPackedUnit(packed, bits, unit);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (size_t j = 0; j < kCodesInUnit && unit * kCodesInUnit + j < count; ++j) {
    codes[unit * kCodesInUnit + j] =
        static_cast<uint8_t>(word >> (static_cast<int>(j) * bits) & mask);
  }
}

constexpr Grid OneThreadPerUnit(size_t count) {
  return OneThreadPerItem((count + kCodesInUnit - 1) / kCodesInUnit);
}

}  // namespace

Status PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed, const Stream& stream) {
  return Launch("pack bits", PackKernel, OneThreadPerUnit(codes.size()), stream, codes.data(),
                codes.size(), bits, packed);
}

Status UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes,
                  const Stream& stream) {
  return Launch("unpack bits", UnpackKernel, OneThreadPerUnit(codes.size()), stream, packed,
                codes.size(), bits, codes.data());
}

}  // namespace thinwire::kernels::cuda
