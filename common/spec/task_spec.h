// TaskSpec selects the model, the dataset and the training settings of a job. LossScaling
// configures the loss scale in low precision. Both are immutable.
#ifndef THINWIRE_COMMON_SPEC_TASK_SPEC_H_
#define THINWIRE_COMMON_SPEC_TASK_SPEC_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/spec/local_steps_spec.h"
#include "common/text/problems.h"

namespace thinwire {

enum class ModelKind : uint8_t { kSoftmax, kMlp, kCnn, kResnet20, kTorchScript };
enum class DatasetKind : uint8_t { kFashionMnist, kCifar10, kSafetensors };
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
// kScript: the TorchScript module computes the loss itself.
enum class LossKind : uint8_t { kCrossEntropy, kScript };

// The names of the models, datasets, precisions and losses, in the order of their enums.
inline constexpr std::string_view kModelNames[] = {"softmax", "mlp", "cnn", "resnet20",
                                                   "torchscript"};
inline constexpr std::string_view kDatasetNames[] = {"fashion_mnist", "cifar10", "safetensors"};
inline constexpr std::string_view kPrecisionNames[] = {"fp32", "bf16", "fp16"};
inline constexpr std::string_view kLossNames[] = {"cross_entropy", "script"};

std::ostream& operator<<(std::ostream& out, ModelKind kind);
std::ostream& operator<<(std::ostream& out, DatasetKind kind);
std::ostream& operator<<(std::ostream& out, Precision precision);

// The largest loss scale, 2^24. It brings a gradient of 2^-48 to 2^-24, the smallest positive fp16
// number, and the product with an ordinary loss is far below the largest float.
inline constexpr float kLargestLossScale = 0x1p24f;

// How a worker scales its loss so that small gradients of a backward pass in low precision do not
// become 0 (Micikevicius et al. 2018, section 3.2). worker/trainer/loss_scale.h applies it.
struct LossScaling {
  float first = 65536;       // the initial loss scale, a power of two from 1 to `largest`
  uint64_t interval = 2000;  // consecutive steps without overflow after which the scale doubles
  float largest = kLargestLossScale;

  bool operator==(const LossScaling&) const = default;
};

// The largest number of threads of a server or a worker.
inline constexpr uint32_t kMaxThreads = 1024;

struct TaskSpec {
  ModelKind model = ModelKind::kCnn;
  std::string model_file;  // kTorchScript only
  DatasetKind dataset = DatasetKind::kFashionMnist;
  std::string data_dir = "/usr/share/datasets/fashion-mnist";
  uint32_t batch_size = 32;  // examples of one forward and backward pass
  uint32_t epochs = 1;
  uint64_t seed = 1;            // random seed of initial parameters, shuffling, dropout
  std::string device = "auto";  // auto, cpu or cuda:N
  uint32_t threads = 1;         // CPU threads that one worker computes with
  uint64_t train_examples = 0;  // the number of used training examples; 0: all
  uint64_t test_examples = 0;
  Precision precision = Precision::kFp32;
  uint32_t loss_scale = 0;  // the initial loss scale; 0: 65536 with kFp16, otherwise no scaling
  uint32_t loss_scale_interval = 2000;
  bool stop_on_divergence = true;  // a loss that is not finite ends the run
  LocalStepsSpec local;
  uint32_t accumulate = 1;  // batches whose gradients are accumulated to one gradient
  LossKind loss = LossKind::kCrossEntropy;

  Problems Validate() const;

  // Returns the number of examples of one gradient, and of one step of a worker.
  uint64_t gradient_examples() const { return uint64_t{batch_size} * accumulate; }
  uint64_t step_examples() const { return gradient_examples() * local.count; }
  // Returns the number of forward and backward passes in a step that has all its examples.
  uint64_t step_passes() const { return uint64_t{accumulate} * local.count; }

  // Returns the loss scaling, or nullopt if the loss is not scaled. bf16 requires no scaling,
  // because it has the exponent range of fp32.
  std::optional<LossScaling> loss_scaling() const;

  bool operator==(const TaskSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const TaskSpec& spec);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_TASK_SPEC_H_
