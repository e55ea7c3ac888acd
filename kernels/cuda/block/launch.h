// Launch() starts a kernel on a stream, with nvcc's <<<...>>> syntax or on the emulation. For .cu
// files only. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_LAUNCH_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_LAUNCH_H_

#include "kernels/cuda/block/tile.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// Launches KERNEL(arguments...) with the shape GRID on STREAM. Does nothing if GRID has no block.
// OPERATION names the launch in error messages and must be a string literal.
template <typename... Parameters, typename... Arguments>
Status Launch(const char* operation, void (*kernel)(Parameters...), const Grid& grid,
              const Stream& stream, const Arguments&... arguments) {
  if (grid.block_count == 0) return {};
  const auto blocks = static_cast<unsigned>(grid.block_count);
#ifdef THINWIRE_CUDA_EMULATION
  emulation::Launch(stream.handle(), blocks, grid.thread_count,
                    [=] { kernel(static_cast<Parameters>(arguments)...); });
#else
  // clang-format would parse <<< and >>> as template brackets.
  // clang-format off
  kernel<<<blocks, grid.thread_count, 0, stream.handle()>>>(static_cast<Parameters>(arguments)...);
  // clang-format on
#endif
  return {operation, cudaGetLastError()};
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_LAUNCH_H_
