#include "worker/models/factory.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "worker/models/built_in.h"
#include "worker/models/torch_model.h"
#include "worker/models/torchscript.h"

// Exists if LibTorch computes with OpenBLAS, which has threads of its own.
extern "C" void openblas_set_num_threads(int count) __attribute__((weak));

namespace thinwire {
namespace {

// Returns the reason why a requested CUDA device does not exist, for an error message.
// `device_count` is the number of CUDA devices that LibTorch finds.
std::string MissingDeviceReason(size_t device_count) {
  if (!at::Context::hasCUDART()) return absl::StrCat(TorchVersion(), " was built without CUDA");
  if (device_count == 0) {
    return absl::StrCat(TorchVersion(), " finds no GPU: the driver is missing or too old");
  }
  return absl::StrCat(TorchVersion(), " finds ", device_count,
                      " CUDA devices, starting with cuda:0");
}

absl::StatusOr<at::Device> ParseDevice(const std::string& name) {
  const size_t device_count = torch::cuda::is_available() ? torch::cuda::device_count() : 0;
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto") return device_count > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  absl::string_view number = name;
  uint32_t index = 0;
  if (!absl::ConsumePrefix(&number, "cuda:") || !absl::SimpleAtoi(number, &index)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: unknown device (expected auto, cpu or cuda:N, got \"", name, "\")"));
  }
  if (index >= device_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: ", name, " is not available: ", MissingDeviceReason(device_count)));
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

absl::StatusOr<NeuralNetwork> MakeNetwork(const TaskSpec& task, const ExampleForm& form) {
  if (task.model != ModelKind::kTorchScript && form.type != ValueType::kFloat) {
    return absl::InvalidArgumentError(absl::StrCat(
        "x: wrong type for model: ", std::string(kModelNames[static_cast<size_t>(task.model)]),
        " (expected F32, or model: torchscript, got ",
        std::string(kValueTypeNames[static_cast<size_t>(form.type)]), ")"));
  }
  switch (task.model) {
    case ModelKind::kSoftmax:
      return MakeSoftmax(form.shape, form.class_count, task.seed);
    case ModelKind::kMlp:
      return MakeMlp(form.shape, form.class_count, task.seed);
    case ModelKind::kCnn:
      return MakeCnn(form.shape, form.class_count, task.seed);
    case ModelKind::kResnet20:
      return MakeResnet20(form.shape, form.class_count, task.seed);
    case ModelKind::kTorchScript:
      break;
  }
  return LoadTorchScript(task.model_file, form, task.loss);
}

at::ScalarType ScalarTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      break;
    case Precision::kBf16:
      return at::kBFloat16;
    case Precision::kFp16:
      return at::kHalf;
  }
  return at::kFloat;
}

// Checks that LibTorch supports the task's precision for the model. LibTorch has no function that
// lists the precisions of an operator, so this function runs a training step on two all-zero
// examples.
absl::Status TryPrecision(const TaskSpec& task, const ExampleForm& form, bool on_cpu,
                          Model& model) {
  const Values zeros =
      Zeros(form.type, 2 * TensorShape{.name = "x", .shape = form.shape}.value_count());
  const std::vector<int64_t> labels(2);
  const absl::StatusOr<BatchResult> result = model.Train(
      {.x = ViewOf(zeros), .labels = labels}, /*loss_scale=*/1,
      [](uint32_t) { return absl::OkStatus(); }, [](uint32_t, const TensorGradient&) {});
  if (!result.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "precision: not supported by ", TorchVersion(), " for this model and device (expected ",
        on_cpu ? "fp32 or bf16" : "another precision, such as fp32", ", got ",
        std::string(kPrecisionNames[static_cast<size_t>(task.precision)]),
        "): ", std::string(result.status().message())));
  }
  model.ResetBuffers();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<int>> CudaDeviceOf(const TaskSpec& task) {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(task.device));
  return device.is_cpu() ? std::nullopt : std::optional<int>(device.index());
}

std::string TorchVersion() { return "LibTorch " TORCH_VERSION; }

void UseThreads(uint32_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  at::set_num_interop_threads(static_cast<int>(threads));
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(static_cast<int>(threads));
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TaskSpec& task, const ExampleForm& form) {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(task.device));
  const at::ScalarType precision = ScalarTypeOf(task.precision);
  ASSIGN_OR_RETURN(NeuralNetwork network, MakeNetwork(task, form));
  auto model = std::make_unique<TorchModel>(std::move(network), form, device, precision);
  // worker/trainer/loss_check.h tries a module that computes the loss, which may refuse zeros.
  if (precision != at::kFloat && task.loss == LossKind::kCrossEntropy) {
    RETURN_IF_ERROR(TryPrecision(task, form, device.is_cpu(), *model));
  }
  return model;
}

}  // namespace thinwire
