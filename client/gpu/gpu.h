// OpenGpu() returns a GPU as the Device of a client. Target :gpu needs the CUDA toolkit; target
// :open_gpu also builds without it, and then OpenGpu() returns an error.
#ifndef THINWIRE_CLIENT_GPU_GPU_H_
#define THINWIRE_CLIENT_GPU_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/encode/device.h"

namespace thinwire {

// Returns GPU NUMBER (from 0) for one client, and makes it the calling thread's current device.
// Objects made by different Devices share no memory or stream. Errors: Unimplemented if the program
// was built without the CUDA toolkit; FailedPrecondition if there is no driver or no GPU with that
// number; CUDA errors.
absl::StatusOr<std::unique_ptr<const Device>> OpenGpu(int number);

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_GPU_GPU_H_
