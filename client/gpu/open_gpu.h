// The one place that a program gets a GPU from. It links with and without the CUDA toolkit.
#ifndef THINWIRE_CLIENT_GPU_OPEN_GPU_H_
#define THINWIRE_CLIENT_GPU_OPEN_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/encode/device.h"

namespace thinwire {

// The GPU of this NUMBER, for one client. Errors: Unimplemented where this program was built
// without the CUDA toolkit; FailedPrecondition that says what the machine lacks; the device's.
absl::StatusOr<std::unique_ptr<const Device>> OpenGpu(int number);

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_GPU_OPEN_GPU_H_
