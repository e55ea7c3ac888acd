// NeuralNetwork describes the computation of one model: its parameters, its buffers, and a function that
// computes logits or the loss. TorchModel (torch_model.h) makes a Model from a NeuralNetwork.
//
// This header includes only ATen, because ATen's operators record the data for autograd. ATen
// compiles in half the time of torch/torch.h.
#ifndef THINWIRE_WORKER_MODELS_NEURAL_NETWORK_H_
#define THINWIRE_WORKER_MODELS_NEURAL_NETWORK_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker/models/model.h"

namespace thinwire {

// A tensor with its name in PyTorch's state_dict.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

struct NeuralNetwork {
  // Blocks until the parameter with the index `parameter` is up to date, and returns its tensor. A
  // Forward function should read each parameter as late as possible, to leave the most time for
  // communication.
  using Read = std::function<at::Tensor(uint32_t parameter)>;
  // Computes logits [n, classes] from a batch [n, ...example shape]. Updates the buffers if
  // `training` is true.
  using Forward = std::function<at::Tensor(const at::Tensor& x, bool training, const Read& read)>;
  // Computes the mean loss, a scalar, of a batch and its targets y, [n, ...target shape]. Otherwise
  // like Forward.
  using Loss = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y, bool training,
                                        const Read& read)>;

  std::string name;
  // The names of the parameters, and the parameters: fp32 leaf tensors that require a gradient,
  // contiguous on the CPU, in forward order.
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  std::vector<TensorAlias> aliases;
  // The tensors that `forward` or `loss` updates. The function contains references to the same tensors.
  std::vector<NamedTensor> buffers;
  // Parameters of a TorchScript file that keep the values of the file.
  std::vector<NamedTensor> frozen;
  Forward forward;  // null with loss: script
  Loss loss;        // null without it
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_NEURAL_NETWORK_H_
