// The model that a Task names, on the device and in the precision that it names.
#ifndef THINWIRE_WORKER_MODELS_FACTORY_H_
#define THINWIRE_WORKER_MODELS_FACTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "proto/config.pb.h"
#include "worker/model.h"

namespace thinwire {

// "LibTorch 1.13.1".
std::string TorchVersion();

// How many threads LibTorch's arithmetic takes in this process. Call it once, before the first
// model.
void UseThreads(uint32_t threads);

// The number of the CUDA device that the model of TASK computes on; nothing: the CPU. Errors:
// InvalidArgument for a device that there is not, which says what is missing.
absl::StatusOr<std::optional<int>> CudaDeviceOf(const Task& task);

// Errors: InvalidArgument that lists the models, devices or precisions there are, says why the
// model does not fit the examples, what LibTorch lacks for the precision, or what a TorchScript
// file lacks; NotFound for its file.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const Task& task,
                                                 std::span<const int64_t> example_shape,
                                                 int64_t class_count);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_FACTORY_H_
