#include "client/gpu/open_gpu.h"

#include "client/gpu/gpu.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<const Device>> OpenGpu(int number) {
  return client::gpu::Gpu::Open(number);
}

}  // namespace thinwire
