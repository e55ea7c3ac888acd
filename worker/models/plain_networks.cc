#include "worker/models/plain_networks.h"

#include "worker/models/image_shape.h"
#include "worker/models/layers.h"

namespace thinwire {
namespace {

int64_t ValueCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) count *= dimension;
  return count;
}

}  // namespace

Network MakeSoftmax(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed) {
  Network network;
  network.name = "softmax";
  LayerMaker(seed, network).Dense("dense", ValueCount(example_shape), class_count);
  network.forward = [](const at::Tensor& x, bool, const Network::Read& read) {
    return ApplyDense(x.flatten(1), read, 0);
  };
  return network;
}

Network MakeMlp(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed) {
  Network network;
  network.name = "mlp";
  LayerMaker make(seed, network);
  const uint32_t dense1 = make.Dense("dense1", ValueCount(example_shape), 256);
  const uint32_t dense2 = make.Dense("dense2", 256, 128);
  const uint32_t dense3 = make.Dense("dense3", 128, class_count);
  network.forward = [=](const at::Tensor& x, bool, const Network::Read& read) {
    at::Tensor y = at::relu(ApplyDense(x.flatten(1), read, dense1));
    y = at::relu(ApplyDense(y, read, dense2));
    return ApplyDense(y, read, dense3);
  };
  return network;
}

absl::StatusOr<Network> MakeCnn(std::span<const int64_t> example_shape, int64_t class_count,
                                uint64_t seed) {
  const absl::Status fits = CheckImageShape("cnn", example_shape);
  if (!fits.ok()) return fits;
  Network network;
  network.name = "cnn";
  LayerMaker make(seed, network);
  const uint32_t conv1 = make.Convolution("conv1", example_shape[0], 16, 5);
  const uint32_t conv2 = make.Convolution("conv2", 16, 32, 5);
  // Two poolings halve height and width twice.
  const int64_t features = 32 * (example_shape[1] / 4) * (example_shape[2] / 4);
  const uint32_t dense1 = make.Dense("dense1", features, 128);
  const uint32_t dense2 = make.Dense("dense2", 128, class_count);
  network.forward = [=](const at::Tensor& x, bool, const Network::Read& read) {
    at::Tensor y = at::max_pool2d(at::relu(ApplyConvolution(x, read, conv1)), 2);
    y = at::max_pool2d(at::relu(ApplyConvolution(y, read, conv2)), 2);
    y = at::relu(ApplyDense(y.flatten(1), read, dense1));
    return ApplyDense(y, read, dense2);
  };
  return network;
}

}  // namespace thinwire
