#include "kernels/cuda/copy.h"

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {
namespace {

Status Copy(const char* attempt, cudaMemcpyKind kind, std::span<const std::byte> from,
            std::span<std::byte> to, const Stream& stream) {
  if (to.empty()) return {};
  return {attempt, cudaMemcpyAsync(to.data(), from.data(), to.size(), kind, stream.handle())};
}

}  // namespace

Status CopyBytesToDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream) {
  return Copy("copy to the device", cudaMemcpyHostToDevice, from, to, stream);
}

Status CopyBytesToHost(std::span<const std::byte> from, std::span<std::byte> to,
                       const Stream& stream) {
  return Copy("copy to the host", cudaMemcpyDeviceToHost, from, to, stream);
}

Status CopyBytesOnDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream) {
  return Copy("copy on the device", cudaMemcpyDeviceToDevice, from, to, stream);
}

Status Clear(std::span<std::byte> bytes, const Stream& stream) {
  if (bytes.empty()) return {};
  return {"clear", cudaMemsetAsync(bytes.data(), 0, bytes.size(), stream.handle())};
}

}  // namespace thinwire::kernels::cuda
