// The user's own model: a TorchScript file (torch.jit.script or torch.jit.trace, then save).
//
//   parameters   those of named_parameters() that require a gradient, in that order, fp32; frozen
//   ones stay as they
//                are in the file
//   buffers      named_buffers(); they stay with each worker
//   forward      takes a batch [n, ...example shape] and gives logits [n, classes]
//
// Nothing tells which layer a TorchScript forward is in, so it waits for all parameters first.
#ifndef THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
#define THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "worker/models/network.h"

namespace thinwire {

// Loads PATH and tries its forward on two examples of zeros. Errors: NotFound, InvalidArgument that
// says what the file lacks.
absl::StatusOr<Network> LoadTorchScript(const std::string& path,
                                        std::span<const int64_t> example_shape,
                                        int64_t class_count);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
