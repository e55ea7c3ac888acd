// Model: what a worker trains. Parameters live in the client's replica: Bind points the model at
// that memory.
//
// Forward asks the gate before it reads a layer's parameters, backward hands each gradient to the
// sink as soon as it is final, so that the wire works while the machine computes. Buffers
// (BatchNorm's running moments) stay with the worker. No LibTorch here; models/ holds the
// implementations. Not thread-safe.
#ifndef THINWIRE_WORKER_MODEL_H_
#define THINWIRE_WORKER_MODEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/gradient.h"
#include "common/partition.h"

namespace thinwire {

// Row-major examples: `x` holds examples * values of one example, `labels` one class each.
struct Batch {
  std::span<const float> x;
  std::span<const int64_t> labels;
};

struct BatchResult {
  double loss_sum = 0;  // summed cross entropy
  uint64_t correct = 0;
  uint64_t examples = 0;

  BatchResult& operator+=(const BatchResult& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    examples += other.examples;
    return *this;
  }
  bool operator==(const BatchResult&) const = default;
};

class Model {
 public:
  // Returns when the tensor's parameters may be read.
  using Gate = std::function<absl::Status(uint32_t tensor)>;
  // Takes a tensor's final gradient of the batch's mean loss, times the loss scale, which nobody
  // changes before the next Train. It lies where the tensor's parameters do. Its owner keeps its
  // memory alive; without one it may be gone by then.
  using Sink = std::function<void(uint32_t tensor, TensorGradient gradient)>;
  // The device is the one that the model computes on.
  enum class Place { kHost, kDevice };

  virtual ~Model() = default;

  // Names and shapes in forward order, with the values drawn from the seed.
  virtual const std::vector<TensorShape>& tensors() const = 0;
  virtual std::span<const float> initial(uint32_t tensor) const = 0;

  // From now on the tensor's parameters are at MEMORY, at PLACE, which outlives the model.
  // REQUIRES: the tensor's length.
  virtual void Bind(uint32_t tensor, std::span<float> memory, Place place) = 0;

  // Forward and backward. The sink gets every tensor once, an unused one with zeros. What is
  // returned is without the scale. Errors: the gate's, or InvalidArgument if the batch does not fit
  // the model.
  virtual absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                            const Sink& sink) = 0;
  // Forward alone, in evaluation mode.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch) = 0;

  // Whether there are buffers that a joiner must recompute.
  virtual bool has_buffers() const = 0;
  virtual void ResetBuffers() = 0;
  // Forward alone in training mode, which moves the buffers.
  virtual absl::Status UpdateBuffers(const Batch& batch) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODEL_H_
