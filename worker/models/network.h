// Network: the arithmetic of one model, as a value: its parameters, its buffers, and how logits
// come from a batch. TorchModel (torch_model.h) makes a Model of it.
//
// ATen's operators record what autograd needs, so ATen alone is included, which compiles in half
// the time of torch/torch.h.
#ifndef THINWIRE_WORKER_MODELS_NETWORK_H_
#define THINWIRE_WORKER_MODELS_NETWORK_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace thinwire {

struct Network {
  // The parameter of that number, once it may be read. A forward that waits as late as it can
  // leaves the wire the most time.
  using Read = std::function<at::Tensor(uint32_t parameter)>;
  // Logits [n, classes] of a batch [n, ...example shape]. In training, buffers move.
  using Forward = std::function<at::Tensor(const at::Tensor& x, bool training, const Read& read)>;

  std::string name;
  // Leaves of fp32 that require a gradient, contiguous on the CPU, in forward order.
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  // What forward moves; the closure holds the same tensors.
  std::vector<at::Tensor> buffers;
  Forward forward;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_NETWORK_H_
