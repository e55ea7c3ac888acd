// TorchModel: a Model whose arithmetic is a Network in LibTorch.
//
// A parameter is the client's memory itself, on the CPU or on the model's device: Bind swaps the
// tensor's storage once, and no step copies parameters. Only where a model on a CUDA device is
// bound to memory of the host, a parameter is copied after its gate, and its gradient back before
// the sink. Gradients come out of hooks that autograd calls as soon as one is final, so the sink is
// called from within backward, on a CUDA device from a thread of LibTorch's.
//
// In a precision below fp32 every forward runs under autocast (autocast.h); its logits become fp32
// before the loss, and gradients of parameters are fp32 in any case.
#ifndef THINWIRE_WORKER_MODELS_TORCH_MODEL_H_
#define THINWIRE_WORKER_MODELS_TORCH_MODEL_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/model.h"
#include "worker/models/network.h"

namespace thinwire {

// Not thread-safe.
class TorchModel final : public Model {
 public:
  TorchModel(Network network, std::vector<int64_t> example_shape, int64_t class_count,
             at::Device device, at::ScalarType precision);
  TorchModel(const TorchModel&) = delete;
  TorchModel& operator=(const TorchModel&) = delete;

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t tensor) const override;
  void Bind(uint32_t tensor, std::span<float> memory, Place place) override;
  absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                    const Sink& sink) override;
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch) override;
  bool has_buffers() const override { return !network_.buffers.empty(); }
  void ResetBuffers() override;
  absl::Status UpdateBuffers(const Batch& batch) override;

 private:
  struct Tensors {
    at::Tensor x;
    at::Tensor labels;
  };

  absl::StatusOr<Tensors> Load(const Batch& batch) const;
  // Logits in fp32, checked. Errors: the gate's; InvalidArgument for what LibTorch throws, or
  // logits of another shape.
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& x, bool training, const Gate* gate);
  at::Tensor Read(uint32_t parameter, const Gate* gate);
  void Deliver(uint32_t parameter, const at::Tensor& gradient);
  absl::Status Backward(const at::Tensor& loss, const Sink& sink);

  // Constant after construction.
  const std::vector<int64_t> example_shape_;
  const int64_t class_count_;
  const at::Device device_;
  const at::ScalarType precision_;
  std::vector<TensorShape> tensors_;
  std::vector<at::Tensor> initial_;          // on the CPU
  std::vector<at::Tensor> initial_buffers_;  // copies

  Network network_;
  std::vector<at::Tensor> bound_;  // views of the client's memory; undefined before Bind

  // Of the pass at hand.
  std::vector<bool> read_;
  absl::Status gate_status_;
  const Sink* sink_ = nullptr;
  std::vector<bool> delivered_;  // to the sink
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCH_MODEL_H_
