#include "kernels/cuda/put_head.h"

#include <algorithm>

#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

struct Head {
  std::byte at[kMostHeadBytes];
  uint32_t count;
};

__global__ void PutHeadKernel(Head head, std::byte* out, uint32_t length, uint32_t* size) {
  if (threadIdx.x < head.count) out[threadIdx.x] = head.at[threadIdx.x];
  if (threadIdx.x == 0) *size = length;
}

}  // namespace

Status PutHead(std::span<const std::byte> head, std::byte* out, uint32_t length, uint32_t* size,
               const Stream& stream) {
  Head copy = {{}, static_cast<uint32_t>(head.size())};
  std::ranges::copy(head, copy.at);
  return Launch("put a head", PutHeadKernel, {1, unsigned{kMostHeadBytes}}, stream, copy, out,
                length, size);
}

}  // namespace thinwire::kernels::cuda
