// The built-in networks. Each function takes the shape of one example without the batch dimension,
// the number of classes and the seed of the initial values.
#ifndef THINWIRE_WORKER_MODELS_BUILT_IN_H_
#define THINWIRE_WORKER_MODELS_BUILT_IN_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/models/network.h"

namespace thinwire {

// Softmax regression: one dense layer.
Network MakeSoftmax(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed);

// Dense layers of 256, 128 and class_count outputs with ReLU between them.
Network MakeMlp(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed);

// MakeCnn and MakeResnet20 take images [channels, height, width] with height and width of at least
// 4. Errors: InvalidArgument for another example shape.

// Two 5x5 convolutions with 16 and 32 outputs, each followed by ReLU and 2x2 max pooling, then
// dense layers of 128 and class_count outputs. 215,370 values for [1, 28, 28] and 10 classes.
absl::StatusOr<Network> MakeCnn(std::span<const int64_t> example_shape, int64_t class_count,
                                uint64_t seed);

// ResNet-20 for small images (He et al. 2016, section 4.2), with the shortcuts without parameters
// (their option A). Batch normalization follows every convolution; its running moments are buffers.
//
//   3x3 convolution with 16 outputs, ReLU
//   3 blocks of two 3x3 convolutions with 16 outputs     full height and width
//   3 blocks of two 3x3 convolutions with 32 outputs     half
//   3 blocks of two 3x3 convolutions with 64 outputs     a quarter
//   mean over height and width, dense layer              0.27 million values
absl::StatusOr<Network> MakeResnet20(std::span<const int64_t> example_shape, int64_t class_count,
                                     uint64_t seed);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_BUILT_IN_H_
