// TorchModel is a Model that computes a NeuralNetwork with LibTorch.
//
// Parameters use the client's memory directly, on the CPU or on the model's device: Bind() replaces
// the storage of the parameter's tensor once. The exception is a model on a CUDA device whose
// parameters are bound to host memory: TorchModel copies each parameter to the device after the
// call of the gate, and each gradient to the host before the call of the sink. Autograd hooks call
// the sink during the backward pass. If the model is on a CUDA device, a thread of LibTorch makes
// these calls.
//
// If the precision is lower than fp32, every forward pass runs under Autocast (libtorch.h). Logits
// are converted to fp32 before the loss is computed, and so is a loss that the network computes.
// Gradients of parameters are always fp32.
#ifndef THINWIRE_WORKER_MODELS_TORCH_MODEL_H_
#define THINWIRE_WORKER_MODELS_TORCH_MODEL_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/models/model.h"
#include "worker/models/neural_network.h"

namespace thinwire {

// Not thread-safe.
class TorchModel final : public Model {
 public:
  TorchModel(NeuralNetwork network, ExampleForm form, at::Device device, at::ScalarType precision);
  TorchModel(const TorchModel&) = delete;
  TorchModel& operator=(const TorchModel&) = delete;

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::vector<TensorAlias> aliases() const override { return network_.aliases; }
  std::span<const float> initial(uint32_t tensor) const override;
  void Bind(uint32_t tensor, std::span<float> memory, Place place) override;
  absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                    const Sink& sink) override;
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch) override;
  bool has_buffers() const override { return !network_.buffers.empty(); }
  absl::StatusOr<std::vector<ModelBuffer>> Buffers() const override;
  void SetBuffers(std::span<const ModelBuffer> buffers) override;
  void ResetBuffers() override;
  absl::Status UpdateBuffers(const Batch& batch) override;

 private:
  // Returns the buffers and the frozen parameters.
  std::vector<NamedTensor> State() const;

  struct Tensors {
    at::Tensor x;
    at::Tensor y;  // the labels or the targets
  };

  // Returns whether the network computes the loss, not logits.
  bool computes_loss() const { return network_.loss != nullptr; }

  // Seeds LibTorch's random numbers with the batch's seed and returns the batch as tensors.
  absl::StatusOr<Tensors> Load(const Batch& batch) const;
  // Runs the forward pass and returns the logits, or the loss that the network computes, in fp32.
  // Errors: any error that `gate` returns; InvalidArgument if LibTorch throws an exception or the
  // result has the wrong type or shape.
  absl::StatusOr<at::Tensor> Forward(const Tensors& batch, bool training, const Gate* gate);
  // Checks the result of a forward pass and converts it to fp32.
  absl::StatusOr<at::Tensor> CheckedLogits(const at::Tensor& logits, int64_t count) const;
  absl::StatusOr<at::Tensor> CheckedLoss(const at::Tensor& loss) const;
  // Implements NeuralNetwork::Read: calls `gate` for the parameter with the index `parameter`, then
  // returns the parameter's tensor. A null gate means that all parameters are up to date.
  at::Tensor Read(uint32_t parameter, const Gate* gate);
  // Adds the gradient of a parameter to that of the batch's earlier parts and passes the sum to the
  // sink, in the kind of memory to which the parameter is bound.
  void Deliver(uint32_t parameter, const at::Tensor& gradient);
  // Runs the backward pass of a part of the batch. Without a sink, LibTorch adds the gradients to
  // those of the earlier parts; with a sink, Deliver() does.
  absl::Status Backward(const at::Tensor& loss, const Sink* sink);

  // Immutable.
  const ExampleForm form_;
  const at::Device device_;
  const at::ScalarType precision_;
  std::vector<TensorShape> tensors_;
  std::vector<at::Tensor> initial_;  // initial parameters, on the CPU
  std::vector<at::Tensor> initial_buffers_;

  NeuralNetwork network_;
  std::vector<at::Tensor> bound_;  // views of the memory passed to Bind(); undefined before Bind()

  bool had_gradient_ = false;  // a forward pass in training had a result with a gradient

  // The state of the current forward or backward pass.
  std::vector<bool> read_;
  absl::Status gate_status_;
  const Sink* sink_ = nullptr;
  std::vector<bool> delivered_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCH_MODEL_H_
