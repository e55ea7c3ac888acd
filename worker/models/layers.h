// Layers of the built-in networks: LayerMaker creates and initializes their parameters, and the
// Apply functions compute their outputs.
//
// Initial parameters are uniformly distributed between -b and b, where b = gain / sqrt(fan_in),
// fan_in is the number of inputs of one output, and gain is a factor per layer. The C++ standard
// specifies every bit of the random generator, so a seed gives the same parameters with every
// version of LibTorch.
#ifndef THINWIRE_WORKER_MODELS_LAYERS_H_
#define THINWIRE_WORKER_MODELS_LAYERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <random>
#include <string>

#include "worker/models/neural_network.h"

namespace thinwire {

// The gain for layers whose input comes from a ReLU: with the gain sqrt(6), the variance of the
// weights is 2 / fan_in, which keeps the variance of the activations equal from layer to layer (He
// et al. 2015, equation 10).
inline constexpr double kHeGain = 2.449489742783178;

// LayerMaker appends layers to a network, in forward order. Each method adds the layer's parameters
// and returns the index of the first parameter. NAME stands for the argument `name`. Not
// thread-safe.
class LayerMaker {
 public:
  LayerMaker(uint64_t seed, NeuralNetwork& network) : random_(seed), network_(network) {}

  // Adds a dense layer with the parameters NAME.weight [outputs, inputs] and NAME.bias [outputs].
  uint32_t Dense(const std::string& name, int64_t inputs, int64_t outputs, double gain = 1);
  // Adds a convolution with the parameters NAME.weight [outputs, inputs, size, size] and NAME.bias
  // [outputs].
  uint32_t Convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t size);
  // Adds a 3x3 convolution, which has the parameter NAME.weight [outputs, inputs, 3, 3], and a
  // batch normalization of its output, which has the parameters NORM.weight [outputs] and NORM.bias
  // [outputs] and the buffers NORM.running_mean [outputs], NORM.running_var [outputs] and
  // NORM.num_batches_tracked, a scalar. NORM stands for the argument `norm`.
  uint32_t NormalizedConvolution(const std::string& name, const std::string& norm, int64_t inputs,
                                 int64_t outputs);

 private:
  void Add(const std::string& name, at::Tensor values);
  at::Tensor Uniform(at::IntArrayRef shape, double bound);

  std::mt19937_64 random_;
  NeuralNetwork& network_;
};

// The Apply functions compute the output of the layer whose first parameter has the index `first`.

at::Tensor ApplyDense(const at::Tensor& x, const NeuralNetwork::Read& read, uint32_t first);

// Applies a convolution. Pads x so that the output has the same height and width.
at::Tensor ApplyConvolution(const at::Tensor& x, const NeuralNetwork::Read& read, uint32_t first);

// The buffers of a batch normalization, with the meaning that they have in torch.nn.BatchNorm2d.
struct RunningMoments {
  at::Tensor mean;
  at::Tensor variance;
  at::Tensor batch_count;  // the number of batches that updated the moments
};

// Applies a padded 3x3 convolution and then batch normalization (Ioffe and Szegedy 2015) with the
// given running moments. Updates the moments if `training` is true.
at::Tensor ApplyNormalizedConvolution(const at::Tensor& x, const NeuralNetwork::Read& read,
                                      uint32_t first, int64_t stride, bool training,
                                      const RunningMoments& moments);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LAYERS_H_
