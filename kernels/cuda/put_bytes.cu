#include "kernels/cuda/put_bytes.h"

#include <algorithm>

#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

struct Bytes {
  std::byte at[kMostBytesPut];
  uint32_t count;
};

// SIZE may be null.
__global__ void PutKernel(Bytes bytes, std::byte* out, uint32_t length, uint32_t* size) {
  if (threadIdx.x < bytes.count) out[threadIdx.x] = bytes.at[threadIdx.x];
  if (threadIdx.x == 0 && size != nullptr) *size = length;
}

Status Put(const char* attempt, std::span<const std::byte> bytes, std::byte* out, uint32_t length,
           uint32_t* size, const Stream& stream) {
  Bytes copy = {{}, static_cast<uint32_t>(bytes.size())};
  std::ranges::copy(bytes, copy.at);
  return Launch(attempt, PutKernel, {1, unsigned{kMostBytesPut}}, stream, copy, out, length, size);
}

}  // namespace

Status PutBytes(std::span<const std::byte> bytes, std::byte* out, const Stream& stream) {
  return Put("put bytes", bytes, out, 0, nullptr, stream);
}

Status PutHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
               const Stream& stream) {
  return Put("put a head", head, out, length, size, stream);
}

}  // namespace thinwire::kernels::cuda
