#include "kernels/cuda/stream.h"

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

Stream::~Stream() {
  // An error of what still runs is nobody's any more.
  if (handle_ != nullptr) (void)cudaStreamDestroy(handle_);
}

// It does not wait for the default stream, which others of the process may use.
Status Stream::Open() {
  return {"open a stream", cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)};
}

Status Stream::Wait() const { return {"wait for a stream", cudaStreamSynchronize(handle_)}; }

}  // namespace thinwire::kernels::cuda
