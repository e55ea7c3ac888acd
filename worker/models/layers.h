// Layers of the built-in networks: how their parameters are initialized and applied.
//
// Initial values are uniform in +-gain / sqrt(fan_in). The C++ standard defines the generator bit
// by bit, so a seed gives the same parameters with every version of LibTorch.
#ifndef THINWIRE_WORKER_MODELS_LAYERS_H_
#define THINWIRE_WORKER_MODELS_LAYERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <random>
#include <string>

#include "worker/models/network.h"

namespace thinwire {

// sqrt(6) gives weights a variance of 2 / fan_in, which preserves the variance of activations
// through a ReLU (He et al. 2015, equation 10).
inline constexpr double kHeGain = 2.449489742783178;

// LayerMaker appends layers to a network, in forward order. Each method adds the parameters named
// in its comment and returns the index of the first one. Not thread-safe.
class LayerMaker {
 public:
  LayerMaker(uint64_t seed, Network& network) : random_(seed), network_(network) {}

  // NAME.weight [outputs, inputs], NAME.bias [outputs]
  uint32_t Dense(const std::string& name, int64_t inputs, int64_t outputs, double gain = 1);
  // NAME.weight [outputs, inputs, size, size], NAME.bias [outputs]
  uint32_t Convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t size);
  // NAME.weight [outputs, inputs, 3, 3], NAME.scale [outputs], NAME.shift [outputs]; also two
  // buffers, the running mean and variance [outputs] each
  uint32_t NormalizedConvolution(const std::string& name, int64_t inputs, int64_t outputs);

 private:
  void Add(const std::string& name, at::Tensor values);
  at::Tensor Uniform(at::IntArrayRef shape, double bound);

  std::mt19937_64 random_;
  Network& network_;
};

// The following functions apply the layer whose first parameter has index `first`.

at::Tensor ApplyDense(const at::Tensor& x, const Network::Read& read, uint32_t first);

// Pads x so that height and width are preserved.
at::Tensor ApplyConvolution(const at::Tensor& x, const Network::Read& read, uint32_t first);

// Applies a padded 3x3 convolution and then batch normalization (Ioffe and Szegedy 2015) with the
// given running moments. Updates the moments if `training`.
at::Tensor ApplyNormalizedConvolution(const at::Tensor& x, const Network::Read& read,
                                      uint32_t first, int64_t stride, bool training,
                                      const at::Tensor& mean, const at::Tensor& variance);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LAYERS_H_
