// The CUDA runtime API: NVIDIA's header, or, in tests without a GPU, kernels/cuda/emulation. Only
// .cc and .cu files and the headers in kernels/cuda/block include it, so that all other headers
// compile without the CUDA toolkit.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_RUNTIME_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_RUNTIME_H_

#ifdef THINWIRE_CUDA_EMULATION
#include "kernels/cuda/emulation/runtime.h"
#else
#include <cuda_runtime.h>
#endif

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_RUNTIME_H_
