// Layers: how the built-in networks make their parameters and use them.
//
// First values are uniform in +-gain / sqrt(fan_in) and drawn by a generator that the C++ standard
// defines bit by bit, so a seed means the same parameters under every LibTorch.
#ifndef THINWIRE_WORKER_MODELS_LAYERS_H_
#define THINWIRE_WORKER_MODELS_LAYERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <random>
#include <string>

#include "worker/models/network.h"

namespace thinwire {

// sqrt(6): weights of variance 2 / fan_in, which keeps the variance through a ReLU (He et al. 2015,
// equation 10).
inline constexpr double kHeGain = 2.449489742783178;

// Appends layers to a network, in forward order. Each call adds the parameters named in its comment
// and returns the number of the first. Not thread-safe.
class LayerMaker {
 public:
  LayerMaker(uint64_t seed, Network& network) : random_(seed), network_(network) {}

  // NAME.weight [outputs, inputs], NAME.bias [outputs]
  uint32_t Dense(const std::string& name, int64_t inputs, int64_t outputs, double gain = 1);
  // NAME.weight [outputs, inputs, size, size], NAME.bias [outputs]
  uint32_t Convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t size);
  // NAME.weight [outputs, inputs, 3, 3], NAME.scale [outputs], NAME.shift [outputs]; buffers NAME's
  // mean and variance
  uint32_t NormalisedConvolution(const std::string& name, int64_t inputs, int64_t outputs);

 private:
  void Add(const std::string& name, at::Tensor values);
  at::Tensor Uniform(at::IntArrayRef shape, double bound);

  std::mt19937_64 random_;
  Network& network_;
};

// The layer whose first parameter is FIRST, applied to X.

at::Tensor ApplyDense(const at::Tensor& x, const Network::Read& read, uint32_t first);
// Padded so that height and width stay.
at::Tensor ApplyConvolution(const at::Tensor& x, const Network::Read& read, uint32_t first);
// 3x3, padded, followed by batch normalisation with the running MEAN and VARIANCE (Ioffe and
// Szegedy 2015).
at::Tensor ApplyNormalisedConvolution(const at::Tensor& x, const Network::Read& read,
                                      uint32_t first, int64_t stride, bool training,
                                      const at::Tensor& mean, const at::Tensor& variance);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LAYERS_H_
