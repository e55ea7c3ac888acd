#include "common/spec/task_spec.h"

#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace thinwire {
namespace {

constexpr uint32_t kMaxBatchSize = 1u << 20;  // also the most examples of a step

bool IsDevice(const std::string& device) {
  uint32_t number = 0;
  if (absl::StartsWith(device, "cuda:")) return absl::SimpleAtoi(device.substr(5), &number);
  return device == "auto" || device == "cpu";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ModelKind kind) {
  return out << kModelNames[static_cast<size_t>(kind)];
}
std::ostream& operator<<(std::ostream& out, DatasetKind kind) {
  return out << kDatasetNames[static_cast<size_t>(kind)];
}
std::ostream& operator<<(std::ostream& out, Precision precision) {
  return out << kPrecisionNames[static_cast<size_t>(precision)];
}

Problems TaskSpec::Validate() const {
  Problems problems;
  const std::string model_name(kModelNames[static_cast<size_t>(model)]);
  if (model == ModelKind::kTorchScript && model_file.empty()) {
    problems.Add("model_file", "missing (expected a file for model: torchscript, got \"\")");
  }
  if (model != ModelKind::kTorchScript && !model_file.empty()) {
    problems.Add("model_file",
                 absl::StrCat("only valid with model: torchscript (got model: ", model_name, ")"));
  }
  if (model != ModelKind::kTorchScript && loss == LossKind::kScript) {
    problems.Add(
        "loss",
        absl::StrCat("script is only valid with model: torchscript (got model: ", model_name, ")"));
  }
  if (data_dir.empty()) problems.Add("data_dir", "empty (expected a folder, got \"\")");
  problems.RequireInteger("batch_size", batch_size, 1, kMaxBatchSize);
  problems.RequireInteger("epochs", epochs, 1);
  if (!IsDevice(device)) {
    problems.Add("device",
                 absl::StrCat("unknown (expected auto, cpu or cuda:N, got ", device, ")"));
  }
  problems.RequireInteger("threads", threads, 1, kMaxThreads);
  problems.Require(
      loss_scale == 0 || (std::has_single_bit(loss_scale) && loss_scale <= kLargestLossScale),
      "loss_scale", "0 or a power of two up to 16777216", loss_scale);
  problems.RequireInteger("loss_scale_interval", loss_scale_interval, 1);
  problems.Append(local.Validate());
  problems.RequireInteger("accumulate", accumulate, 1, kMaxBatchSize);
  const bool in_range =
      batch_size <= kMaxBatchSize && accumulate <= kMaxBatchSize && local.count <= kMaxLocalSteps;
  if (in_range && step_examples() > kMaxBatchSize) {
    problems.Add(local.enabled() ? "local_steps" : "accumulate",
                 absl::StrCat("too many examples in a step (expected batch_size * accumulate * "
                              "local_steps to be at most ",
                              kMaxBatchSize, ", got ", step_examples(), ")"));
  }
  return problems;
}

std::optional<LossScaling> TaskSpec::loss_scaling() const {
  if (loss_scale == 0 && precision != Precision::kFp16) return std::nullopt;
  LossScaling scaling{.interval = loss_scale_interval};
  if (loss_scale > 0) scaling.first = static_cast<float>(loss_scale);
  return scaling;
}

std::ostream& operator<<(std::ostream& out, const TaskSpec& spec) {
  return out << spec.model << " on " << spec.dataset << ", batch_size " << spec.batch_size
             << ", epochs " << spec.epochs << ", seed " << spec.seed << ", " << spec.precision;
}

}  // namespace thinwire
