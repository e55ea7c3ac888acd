// The built-in networks. Their tensors have the names that the modules in examples/models.py give
// to them. Every function has these arguments: the shape of one example, without the
// batch dimension; the number of classes; the seed of the initial parameters.
#ifndef THINWIRE_WORKER_MODELS_BUILT_IN_H_
#define THINWIRE_WORKER_MODELS_BUILT_IN_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/models/neural_network.h"

namespace thinwire {

// Makes softmax regression: one dense layer.
NeuralNetwork MakeSoftmax(std::span<const int64_t> example_shape, int64_t class_count,
                          uint64_t seed);

// Makes a network of three dense layers with 256, 128 and class_count outputs and ReLU between
// them.
NeuralNetwork MakeMlp(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed);

// MakeCnn and MakeResnet20 require examples that are images: [channels, height, width] with height
// and width of at least 4. Errors: InvalidArgument for other example shapes.

// Makes a network of two 5x5 convolutions with 16 and 32 outputs, each followed by ReLU and 2x2 max
// pooling, and then two dense layers with 128 and class_count outputs and ReLU between them. It has
// 215,370 parameters for examples of shape [1, 28, 28] and 10 classes.
absl::StatusOr<NeuralNetwork> MakeCnn(std::span<const int64_t> example_shape, int64_t class_count,
                                      uint64_t seed);

// Makes ResNet-20 for small images (He et al. 2016, section 4.2), with shortcuts that have no
// parameters (option A of the paper). Batch normalization follows every convolution; its running
// moments are buffers.
//
//   3x3 convolution with 16 outputs, ReLU
//   3 blocks of two 3x3 convolutions with 16 outputs     full height and width
//   3 blocks of two 3x3 convolutions with 32 outputs     half of height and width
//   3 blocks of two 3x3 convolutions with 64 outputs     a quarter of height and width
//   mean over height and width, dense layer              0.27 million parameters in total
absl::StatusOr<NeuralNetwork> MakeResnet20(std::span<const int64_t> example_shape,
                                           int64_t class_count, uint64_t seed);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_BUILT_IN_H_
