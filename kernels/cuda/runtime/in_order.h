// InOrder() runs launches one after the other and stops at the first error.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_IN_ORDER_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_IN_ORDER_H_

#include "kernels/cuda/runtime/status.h"

namespace thinwire::kernels::cuda {

// Calls each of LAUNCHES, which take no arguments and return a Status. Returns the first error.
template <typename... Launches>
Status InOrder(const Launches&... launches) {
  Status status;
  (void)((status = launches()).ok() && ...);
  return status;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_IN_ORDER_H_
