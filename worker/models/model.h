// Model is the interface of a neural network that a worker trains. The client's replica is the
// memory of the model's parameters: Bind() makes the model use this memory, and no step copies
// parameters.
//
// Communication overlaps with computation. The forward pass calls a callback, the gate, before it
// reads a tensor's parameters. The gate waits for the parameters of this tensor only, so the
// parameters of later layers may still be arriving. The backward pass passes each gradient to
// another callback, the sink, as soon as the gradient is final. Buffers (the running moments of
// batch normalization) belong to the worker and are never sent. This header does not depend on
// LibTorch.
#ifndef THINWIRE_WORKER_MODELS_MODEL_H_
#define THINWIRE_WORKER_MODELS_MODEL_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/gradient.h"
#include "common/model/partition.h"
#include "worker/datasets/values.h"

namespace thinwire {

// The types and shapes of one example.
struct ExampleForm {
  std::vector<int64_t> shape;
  ValueType type = ValueType::kFloat;
  int64_t class_count = 0;            // 0 with loss: script
  std::vector<int64_t> target_shape;  // with loss: script
  ValueType target_type = ValueType::kFloat;
};

// A batch of n examples. Their values and targets are row-major.
struct Batch {
  ValuesView x;                     // [n, ...example shape]
  std::span<const int64_t> labels;  // one class number per example, from 0; empty with loss: script
  ValuesView targets;               // with loss: script, [n, ...target shape]
  uint64_t random_seed = 0;         // seeds the model's random numbers, such as those of dropout
  // Train() computes the gradient in parts of this many examples, one after the other, which needs
  // less memory. 0: in one part.
  uint64_t part_size = 0;
};

// The sum of the losses and the number of correct predictions over `examples` examples.
struct BatchResult {
  double loss_sum = 0;  // cross entropies, or each mean loss of a module times its examples
  uint64_t correct = 0;
  uint64_t examples = 0;
  bool loss_only = false;  // the module computed the loss (loss: script), so `correct` is unknown

  // Returns the mean loss per example. REQUIRES: examples > 0.
  double mean_loss() const { return loss_sum / static_cast<double>(examples); }
  // Returns the fraction of correct predictions, or nullopt if it is unknown. REQUIRES: examples >
  // 0.
  std::optional<double> accuracy() const {
    if (loss_only) return std::nullopt;
    return static_cast<double>(correct) / static_cast<double>(examples);
  }
  // Returns true if this test result is better than OTHER: a higher accuracy, or a lower mean loss
  // if there is no accuracy. REQUIRES: both have examples.
  bool IsBetterThan(const BatchResult& other) const {
    if (!loss_only) return *accuracy() > *other.accuracy();
    return std::isfinite(loss_sum) && !(other.mean_loss() <= mean_loss());
  }

  BatchResult& operator+=(const BatchResult& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    examples += other.examples;
    loss_only |= other.loss_only;
    return *this;
  }
  bool operator==(const BatchResult&) const = default;
};

// A tensor that belongs to a model's state and is not trained: a buffer, or a frozen parameter of a
// TorchScript file.
struct ModelBuffer {
  std::string name;   // its name in PyTorch's state_dict
  std::string dtype;  // its type in a safetensors file: "F32", "I64", ...
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  // the values, row-major and little-endian

  bool operator==(const ModelBuffer&) const = default;
};

// Another name of a parameter tensor in PyTorch's state_dict, such as that of tied weights.
struct TensorAlias {
  std::string name;
  uint32_t tensor;

  bool operator==(const TensorAlias&) const = default;
};

// Not thread-safe.
class Model {
 public:
  // Blocks until the tensor's parameters are up to date. If the gate returns an error, the forward
  // pass returns this error.
  using Gate = std::function<absl::Status(uint32_t tensor)>;
  // Receives the final gradient of the batch's mean loss with respect to a tensor, multiplied by
  // the loss scale. The gradient is in the same kind of memory (host or device) as the tensor's
  // parameters. TensorGradient::owner keeps the memory alive. If the owner is null, the gradient is
  // valid only until the sink returns.
  using Sink = std::function<void(uint32_t tensor, TensorGradient gradient)>;
  // The kind of memory that holds parameters and gradients: host memory, or memory of the device on
  // which the model computes.
  enum class Place { kHost, kDevice };

  virtual ~Model() = default;

  // Returns the names and shapes of the parameter tensors, in forward order.
  virtual const std::vector<TensorShape>& tensors() const = 0;
  // Returns the further names of the tensors.
  virtual std::vector<TensorAlias> aliases() const { return {}; }
  // Returns the initial values of a tensor, which were drawn from the seed or read from the model's
  // file.
  virtual std::span<const float> initial(uint32_t tensor) const = 0;

  // Makes `memory`, of kind `place`, the memory of the tensor's parameters. `memory` must outlive
  // the model. REQUIRES: memory.size() is the number of the tensor's values.
  virtual void Bind(uint32_t tensor, std::span<float> memory, Place place) = 0;

  // Runs the forward and backward passes. The sink receives the gradient of every tensor once, zero
  // for a tensor that the batch did not use, during the backward pass of the batch's last part. The
  // gradient is that of the whole batch, but batch normalization normalizes every part by itself.
  // The returned losses are not multiplied by the loss
  // scale. Errors: any error that `gate` returns; InvalidArgument if the batch does not fit the
  // model.
  virtual absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                            const Sink& sink) = 0;
  // Runs the forward pass in evaluation mode. Errors: InvalidArgument if the batch does not fit the
  // model.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch) = 0;

  // Returns true if the model has buffers. A worker that joins a running job must recompute the
  // buffers.
  virtual bool has_buffers() const = 0;
  // Returns copies of the buffers and of the frozen parameters. Errors: InvalidArgument if one has
  // a type that safetensors files do not have.
  virtual absl::StatusOr<std::vector<ModelBuffer>> Buffers() const = 0;
  // Copies the values of `buffers` into the model. REQUIRES: names, types and shapes are those that
  // Buffers() returns, in the same order.
  virtual void SetBuffers(std::span<const ModelBuffer> buffers) = 0;
  // Sets the buffers to their initial values.
  virtual void ResetBuffers() = 0;
  // Runs the forward pass in training mode, which updates the model's buffers. Changes nothing
  // else.
  virtual absl::Status UpdateBuffers(const Batch& batch) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_MODEL_H_
