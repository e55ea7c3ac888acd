#include "worker/models/layers.h"

#include <cmath>

namespace thinwire {

uint32_t LayerMaker::Dense(const std::string& name, int64_t inputs, int64_t outputs, double gain) {
  const auto first = static_cast<uint32_t>(network_.parameters.size());
  const double bound = gain / std::sqrt(static_cast<double>(inputs));
  Add(name + ".weight", Uniform({outputs, inputs}, bound));
  Add(name + ".bias", Uniform({outputs}, bound));
  return first;
}

uint32_t LayerMaker::Convolution(const std::string& name, int64_t inputs, int64_t outputs,
                                 int64_t size) {
  const auto first = static_cast<uint32_t>(network_.parameters.size());
  const double bound = 1 / std::sqrt(static_cast<double>(inputs * size * size));
  Add(name + ".weight", Uniform({outputs, inputs, size, size}, bound));
  Add(name + ".bias", Uniform({outputs}, bound));
  return first;
}

uint32_t LayerMaker::NormalizedConvolution(const std::string& name, const std::string& norm,
                                           int64_t inputs, int64_t outputs) {
  const auto first = static_cast<uint32_t>(network_.parameters.size());
  const double bound = kHeGain / std::sqrt(static_cast<double>(inputs * 9));
  Add(name + ".weight", Uniform({outputs, inputs, 3, 3}, bound));
  Add(norm + ".weight", at::ones({outputs}));
  Add(norm + ".bias", at::zeros({outputs}));
  network_.buffers.push_back({norm + ".running_mean", at::zeros({outputs})});
  network_.buffers.push_back({norm + ".running_var", at::ones({outputs})});
  network_.buffers.push_back({norm + ".num_batches_tracked", at::zeros({}, at::kLong)});
  return first;
}

void LayerMaker::Add(const std::string& name, at::Tensor values) {
  network_.names.push_back(name);
  network_.parameters.push_back(values.set_requires_grad(true));
}

at::Tensor LayerMaker::Uniform(at::IntArrayRef shape, double bound) {
  at::Tensor values = at::empty(shape, at::kFloat);
  float* value = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    // Makes a double in [0, 1) from 53 random bits.
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;
    value[i] = static_cast<float>(bound * (2 * unit - 1));
  }
  return values;
}

at::Tensor ApplyDense(const at::Tensor& x, const NeuralNetwork::Read& read, uint32_t first) {
  return at::linear(x, read(first), read(first + 1));
}

at::Tensor ApplyConvolution(const at::Tensor& x, const NeuralNetwork::Read& read, uint32_t first) {
  const at::Tensor weight = read(first);
  const int64_t padding = weight.size(2) / 2;
  return at::conv2d(x, weight, read(first + 1), /*stride=*/1, padding);
}

at::Tensor ApplyNormalizedConvolution(const at::Tensor& x, const NeuralNetwork::Read& read,
                                      uint32_t first, int64_t stride, bool training,
                                      const RunningMoments& moments) {
  const at::Tensor y = at::conv2d(x, read(first), /*bias=*/{}, stride, /*padding=*/1);
  if (training) moments.batch_count.add_(1);
  return at::batch_norm(y, read(first + 1), read(first + 2), moments.mean, moments.variance,
                        training, /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/true);
}

}  // namespace thinwire
