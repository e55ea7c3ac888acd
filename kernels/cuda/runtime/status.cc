#include "kernels/cuda/runtime/status.h"

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

std::string Status::message() const {
  if (ok()) return "ok";
  return std::string(operation_) + ": " + cudaGetErrorString(static_cast<cudaError_t>(error_));
}

}  // namespace thinwire::kernels::cuda
