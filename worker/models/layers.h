// Layers of the built-in networks: LayerMaker creates and initializes their parameters, and the
// Apply functions compute their outputs.
//
// Initial parameters are uniformly distributed between -gain / sqrt(fan_in) and gain /
// sqrt(fan_in). The C++ standard specifies every bit of the random generator, so a seed gives the
// same parameters with every version of LibTorch.
#ifndef THINWIRE_WORKER_MODELS_LAYERS_H_
#define THINWIRE_WORKER_MODELS_LAYERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <random>
#include <string>

#include "worker/models/network.h"

namespace thinwire {

// sqrt(6), with which weights have a variance of 2 / fan_in. This variance preserves the variance
// of the activations after a ReLU (He et al. 2015, equation 10).
inline constexpr double kHeGain = 2.449489742783178;

// LayerMaker appends layers to a network, in forward order. Each method adds the parameters that
// its comment lists, and returns the index of the first of these parameters. Not thread-safe.
class LayerMaker {
 public:
  LayerMaker(uint64_t seed, Network& network) : random_(seed), network_(network) {}

  // NAME.weight [outputs, inputs], NAME.bias [outputs]
  uint32_t Dense(const std::string& name, int64_t inputs, int64_t outputs, double gain = 1);
  // NAME.weight [outputs, inputs, size, size], NAME.bias [outputs]
  uint32_t Convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t size);
  // NAME.weight [outputs, inputs, 3, 3], NAME.scale [outputs], NAME.shift [outputs]. Also adds two
  // buffers of shape [outputs]: the running mean and the running variance.
  uint32_t NormalizedConvolution(const std::string& name, int64_t inputs, int64_t outputs);

 private:
  void Add(const std::string& name, at::Tensor values);
  at::Tensor Uniform(at::IntArrayRef shape, double bound);

  std::mt19937_64 random_;
  Network& network_;
};

// The Apply functions compute the output of the layer whose first parameter has the index `first`.

at::Tensor ApplyDense(const at::Tensor& x, const Network::Read& read, uint32_t first);

// Applies a convolution. Pads x so that the output has the same height and width.
at::Tensor ApplyConvolution(const at::Tensor& x, const Network::Read& read, uint32_t first);

// Applies a padded 3x3 convolution and then batch normalization (Ioffe and Szegedy 2015) with the
// given running moments. Updates the moments if `training` is true.
at::Tensor ApplyNormalizedConvolution(const at::Tensor& x, const Network::Read& read,
                                      uint32_t first, int64_t stride, bool training,
                                      const at::Tensor& mean, const at::Tensor& variance);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LAYERS_H_
