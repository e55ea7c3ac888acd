// Network is the arithmetic of one model as a value: its parameters, its buffers, and a function
// that computes logits. TorchModel (torch_model.h) turns it into a Model.
//
// ATen's operators record what autograd needs, so this header includes ATen only. It compiles in
// half the time of torch/torch.h.
#ifndef THINWIRE_WORKER_MODELS_NETWORK_H_
#define THINWIRE_WORKER_MODELS_NETWORK_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace thinwire {

struct Network {
  // Blocks until a parameter is up to date and returns it. A forward function should call it as
  // late as possible, which leaves the most time for communication.
  using Read = std::function<at::Tensor(uint32_t parameter)>;
  // Computes logits [n, classes] from a batch [n, ...example shape]. Updates the buffers if
  // `training`.
  using Forward = std::function<at::Tensor(const at::Tensor& x, bool training, const Read& read)>;

  std::string name;
  // fp32 leaf tensors that require a gradient, contiguous on the CPU, in forward order.
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  // The tensors that `forward` updates; it holds references to the same tensors.
  std::vector<at::Tensor> buffers;
  Forward forward;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_NETWORK_H_
