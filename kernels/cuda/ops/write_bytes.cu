#include "kernels/cuda/ops/write_bytes.h"

#include <algorithm>

#include "kernels/cuda/block/launch.h"

namespace thinwire::kernels::cuda {
namespace {

struct Bytes {
  std::byte at[kMaxWriteBytes];
  uint32_t count;
};

// Copies BYTES to OUT, and sets SIZE to LENGTH unless SIZE is null.
__global__ void WriteKernel(Bytes bytes, std::byte* out, uint32_t length, uint32_t* size) {
  if (threadIdx.x < bytes.count) out[threadIdx.x] = bytes.at[threadIdx.x];
  if (threadIdx.x == 0 && size != nullptr) *size = length;
}

Status Write(const char* operation, std::span<const std::byte> bytes, std::byte* out,
             uint32_t length, uint32_t* size, const Stream& stream) {
  Bytes copy = {{}, static_cast<uint32_t>(bytes.size())};
  std::ranges::copy(bytes, copy.at);
  return Launch(operation, WriteKernel, {1, unsigned{kMaxWriteBytes}}, stream, copy, out, length,
                size);
}

}  // namespace

Status WriteBytes(std::span<const std::byte> bytes, std::byte* out, const Stream& stream) {
  return Write("write bytes", bytes, out, 0, nullptr, stream);
}

Status WriteHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
                 const Stream& stream) {
  return Write("write a payload head", head, out, length, size, stream);
}

}  // namespace thinwire::kernels::cuda
