// What LibTorch has launched on a device, which runs later.
#ifndef THINWIRE_WORKER_MODELS_LAUNCHED_H_
#define THINWIRE_WORKER_MODELS_LAUNCHED_H_

#include <c10/core/Device.h>

#include <functional>

#include "absl/status/status.h"

namespace thinwire {

// What returns when all that the calling thread has launched on DEVICE so far has run, from
// whichever thread it is called; with an Internal error for what went wrong there. None on the CPU,
// which has nothing to wait for. Throws what LibTorch throws.
std::function<absl::Status()> WaitForLaunched(c10::Device device);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LAUNCHED_H_
