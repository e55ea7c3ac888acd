// Creates the model of a Task, on the task's device and in its precision.
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

// Returns, for example, "LibTorch 1.13.1".
std::string TorchVersion();

// Sets the number of threads that LibTorch computes with. Call it once per process, before creating
// a model.
void UseThreads(uint32_t threads);

// Returns the number of the task's CUDA device, or nothing for the CPU. Errors: InvalidArgument if
// the device does not exist; the message gives the reason.
absl::StatusOr<std::optional<int>> CudaDeviceOf(const TaskSpec& task);

// Returns the model of TASK for examples of EXAMPLE_SHAPE (without the batch dimension). Errors:
// InvalidArgument for an unknown device, a model that does not fit the examples, a precision that
// LibTorch does not support for the model, or an invalid TorchScript file; NotFound if that file is
// missing.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TaskSpec& task,
                                                 std::span<const int64_t> example_shape,
                                                 int64_t class_count);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_FACTORY_H_
