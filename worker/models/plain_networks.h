// The networks without buffers. Each takes the shape of one example (without the batch), the
// classes there are and the seed of the first values.
#ifndef THINWIRE_WORKER_MODELS_PLAIN_NETWORKS_H_
#define THINWIRE_WORKER_MODELS_PLAIN_NETWORKS_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/models/network.h"

namespace thinwire {

// One dense layer of all values: softmax regression.
Network MakeSoftmax(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed);

// Dense layers of 256, 128 and class_count outputs with ReLU between them.
Network MakeMlp(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed);

// Two 5x5 convolutions of 16 and 32 outputs, each with ReLU and 2x2 pooling, then dense layers of
// 128 and class_count: 215,370 values for [1, 28, 28] and 10 classes. Errors: InvalidArgument
// unless the shape is [channels, height, width] of at least 4x4.
absl::StatusOr<Network> MakeCnn(std::span<const int64_t> example_shape, int64_t class_count,
                                uint64_t seed);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_PLAIN_NETWORKS_H_
