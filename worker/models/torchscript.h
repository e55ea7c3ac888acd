// A user's own model, loaded from a TorchScript file (torch.jit.script or torch.jit.trace, then
// save).
//
//   parameters   the entries of named_parameters() that require a gradient, in that order; fp32.
//                Frozen parameters keep the values of the file.
//   buffers      named_buffers()
//   forward      maps a batch [n, ...example shape] to logits [n, classes]
//
// A TorchScript forward does not say when it reads which parameter, so it waits for all parameters
// before it begins.
#ifndef THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
#define THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "worker/models/network.h"

namespace thinwire {

// Loads the file and checks its forward with two examples of zeros. Errors: NotFound if the file is
// missing; InvalidArgument that names the missing or wrong part.
absl::StatusOr<Network> LoadTorchScript(const std::string& path,
                                        std::span<const int64_t> example_shape,
                                        int64_t class_count);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
