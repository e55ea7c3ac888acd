// The CUDA runtime: NVIDIA's, or in tests without a GPU the emulation of the part that is used
// here. Only sources include this, so that the headers need no toolkit.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_H_

#ifdef THINWIRE_CUDA_EMULATION
#include "kernels/cuda/emulation/runtime.h"
#else
#include <cuda_runtime.h>
#endif

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_H_
