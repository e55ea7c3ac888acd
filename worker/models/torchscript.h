// Loads a user's own model from a TorchScript file, which the user made with torch.jit.script or
// torch.jit.trace and saved with torch.jit.save.
//
//   parameters   the entries of named_parameters() that require a gradient, in this order; fp32.
//                Other parameters keep their values from the file.
//   buffers      named_buffers()
//   forward      loss: cross_entropy: maps a batch [n, ...example shape] to logits [n, classes]
//                loss: script: maps a batch and its targets [n, ...target shape] to their mean loss
//
// A TorchScript model does not report when it reads a parameter, so the forward pass waits for all
// parameters before it begins.
#ifndef THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
#define THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "worker/models/model.h"
#include "worker/models/neural_network.h"

namespace thinwire {

// Loads the model file and checks the arguments of its forward method and, if it computes logits,
// its forward pass with two all-zero examples. worker/trainer/loss_check.h checks a loss. Errors: NotFound
// if the file is missing; InvalidArgument, with the wrong or missing part of the model.
absl::StatusOr<NeuralNetwork> LoadTorchScript(const std::string& path, const ExampleForm& form,
                                              LossKind loss);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCHSCRIPT_H_
