// InOrder: launches that follow each other, up to the first that fails, whose status it returns.
#ifndef THINWIRE_KERNELS_CUDA_IN_ORDER_H_
#define THINWIRE_KERNELS_CUDA_IN_ORDER_H_

#include "kernels/cuda/status.h"

namespace thinwire::kernels::cuda {

// Each of LAUNCHES is called without arguments and returns a Status.
template <typename... Launches>
Status InOrder(const Launches&... launches) {
  Status status;
  (void)((status = launches()).ok() && ...);
  return status;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_IN_ORDER_H_
