// Creates the model of a task, on the device and in the precision that the task specifies.
#ifndef THINWIRE_WORKER_MODELS_FACTORY_H_
#define THINWIRE_WORKER_MODELS_FACTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "worker/models/model.h"

namespace thinwire {

// Returns the name and version of LibTorch, for example "LibTorch 1.13.1".
std::string TorchVersion();

// Sets the number of threads with which LibTorch and its OpenBLAS compute. Call UseThreads once per
// process, before creating a model.
void UseThreads(uint32_t threads);

// Returns the number of the task's CUDA device, or nullopt if the task runs on the CPU. Errors:
// InvalidArgument, with the reason, if the device does not exist.
absl::StatusOr<std::optional<int>> CudaDeviceOf(const TaskSpec& task);

// Makes the task's model. Errors: InvalidArgument for an unknown device, a model that does not fit
// the examples, a precision that LibTorch does not support for the model, or an invalid TorchScript
// file; NotFound if the TorchScript file is missing.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TaskSpec& task, const ExampleForm& form);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_FACTORY_H_
