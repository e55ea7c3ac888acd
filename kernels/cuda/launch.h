// Launch: a kernel on a stream, in whichever way the compiler at hand starts one. Included only by
// the sources of kernels. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_LAUNCH_H_
#define THINWIRE_KERNELS_CUDA_LAUNCH_H_

#include <cstddef>

#include "kernels/cuda/runtime.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

struct Grid {
  size_t block_count = 0;
  unsigned thread_count = 0;  // of a block
};

// So many blocks of THREAD_COUNT that each of COUNT things gets a thread.
constexpr Grid OneThreadEach(size_t count, unsigned thread_count = 256) {
  return {(count + thread_count - 1) / thread_count, thread_count};
}

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
  // clang-format off: it takes the launch for templates
  kernel<<<blocks, grid.thread_count, 0, stream.handle()>>>(static_cast<Parameters>(arguments)...);
  // clang-format on
#endif
  return {attempt, cudaGetLastError()};
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_LAUNCH_H_
