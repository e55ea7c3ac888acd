// Launch: a kernel on a stream, in whichever way the compiler at hand starts one. Included only by
// the sources of kernels. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_LAUNCH_H_
#define THINWIRE_KERNELS_CUDA_LAUNCH_H_

#include "kernels/cuda/runtime.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/tile.h"

namespace thinwire::kernels::cuda {

// ATTEMPT is what an error says. No block: nothing is launched.
template <typename... Parameters, typename... Arguments>
Status Launch(const char* attempt, void (*kernel)(Parameters...), const Grid& grid,
              const Stream& stream, const Arguments&... arguments) {
  if (grid.block_count == 0) return {};
  const auto blocks = static_cast<unsigned>(grid.block_count);
#ifdef THINWIRE_CUDA_EMULATION
  emulation::Launch(stream.handle(), blocks, grid.thread_count,
                    [=] { kernel(static_cast<Parameters>(arguments)...); });
#else
  // The formatter takes the launch for templates.
  // clang-format off
  kernel<<<blocks, grid.thread_count, 0, stream.handle()>>>(static_cast<Parameters>(arguments)...);
  // clang-format on
#endif
  return {attempt, cudaGetLastError()};
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_LAUNCH_H_
