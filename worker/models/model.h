// Model is what a worker trains. Its parameters are the client's replica: Bind() points the model
// at that memory, and no step copies parameters.
//
// Communication overlaps with computation. The forward pass waits at a gate before it reads a
// tensor's parameters, so that later layers' parameters may still be arriving. The backward pass
// hands each gradient to the sink as soon as it is final. Buffers (batch normalisation's running
// moments) stay with the worker and are never sent. This header does not depend on LibTorch.
#ifndef THINWIRE_WORKER_MODELS_MODEL_H_
#define THINWIRE_WORKER_MODELS_MODEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/gradient.h"
#include "common/partition.h"

namespace thinwire {

// A batch of n examples.
struct Batch {
  std::span<const float> x;         // [n, ...example shape], row-major
  std::span<const int64_t> labels;  // [n], classes from 0
};

// The sums of a loss and of correct predictions over some examples.
struct BatchResult {
  double loss_sum = 0;  // of the cross entropy
  uint64_t correct = 0;
  uint64_t examples = 0;

  // REQUIRES: examples > 0.
  double mean_loss() const { return loss_sum / static_cast<double>(examples); }
  // The fraction of correct predictions. REQUIRES: examples > 0.
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }

  BatchResult& operator+=(const BatchResult& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    examples += other.examples;
    return *this;
  }
  bool operator==(const BatchResult&) const = default;
};

// Not thread-safe.
class Model {
 public:
  // Blocks until the tensor's parameters are up to date. Errors abort the pass.
  using Gate = std::function<absl::Status(uint32_t tensor)>;
  // Receives a tensor's final gradient of the batch's mean loss, multiplied by the loss scale. The
  // gradient lies where the tensor was bound. Its owner keeps the memory alive; a gradient without
  // an owner is valid only until the sink returns.
  using Sink = std::function<void(uint32_t tensor, TensorGradient gradient)>;
  // Host memory, or memory of the device on which the model computes.
  enum class Place { kHost, kDevice };

  virtual ~Model() = default;

  // Names and shapes of the parameters, in forward order.
  virtual const std::vector<TensorShape>& tensors() const = 0;
  // The initial values of a parameter, drawn from the seed or read from the model's file.
  virtual std::span<const float> initial(uint32_t tensor) const = 0;

  // Makes `memory` the tensor's parameters. It must outlive the model.
  // REQUIRES: memory.size() is the tensor's value count.
  virtual void Bind(uint32_t tensor, std::span<float> memory, Place place) = 0;

  // Runs forward and backward. The sink receives every tensor once; the gradient of an unused
  // tensor is zero. The result does not include the loss scale. Errors: the gate's; InvalidArgument
  // if the batch does not fit the model.
  virtual absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                            const Sink& sink) = 0;
  // Runs forward in evaluation mode. Errors: InvalidArgument if the batch does not fit the model.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch) = 0;

  // Returns true if the model has buffers. A worker that joins a running job must recompute them.
  virtual bool has_buffers() const = 0;
  // Sets the buffers to their initial values.
  virtual void ResetBuffers() = 0;
  // Runs forward in training mode, which updates the buffers and nothing else.
  virtual absl::Status UpdateBuffers(const Batch& batch) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_MODEL_H_
