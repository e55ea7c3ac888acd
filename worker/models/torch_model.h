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
// are converted to fp32 before the loss is computed. Gradients of parameters are always fp32.
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
  TorchModel(NeuralNetwork network, std::vector<int64_t> example_shape, int64_t class_count,
             at::Device device, at::ScalarType precision);
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
    at::Tensor labels;
  };

  // Seeds LibTorch's random numbers with the batch's seed and returns the batch as tensors.
  absl::StatusOr<Tensors> Load(const Batch& batch) const;
  // Runs the forward pass and returns the logits in fp32. Errors: any error that `gate` returns;
  // InvalidArgument if LibTorch throws an exception or the logits have the wrong shape.
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& x, bool training, const Gate* gate);
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
  const std::vector<int64_t> example_shape_;
  const int64_t class_count_;
  const at::Device device_;
  const at::ScalarType precision_;
  std::vector<TensorShape> tensors_;
  std::vector<at::Tensor> initial_;  // initial parameters, on the CPU
  std::vector<at::Tensor> initial_buffers_;

  NeuralNetwork network_;
  std::vector<at::Tensor> bound_;  // views of the memory passed to Bind(); undefined before Bind()

  // The state of the current forward or backward pass.
  std::vector<bool> read_;
  absl::Status gate_status_;
  const Sink* sink_ = nullptr;
  std::vector<bool> delivered_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCH_MODEL_H_
