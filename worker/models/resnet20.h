// ResNet-20 for small images (He et al. 2016, section 4.2), with shortcuts that have no parameters
// (their option A).
//
//   3x3 convolution, 16                           then ReLU
//   3 blocks of two 3x3 convolutions, 16          height x width
//   3 blocks of two 3x3 convolutions, 32          half of it
//   3 blocks of two 3x3 convolutions, 64          a quarter
//   mean over height and width, dense             0.27 million values
//
// Every convolution is followed by batch normalisation; the running means and variances are the
// buffers.
#ifndef THINWIRE_WORKER_MODELS_RESNET20_H_
#define THINWIRE_WORKER_MODELS_RESNET20_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/models/network.h"

namespace thinwire {

// As the networks of plain_networks.h. Errors: those of MakeCnn.
absl::StatusOr<Network> MakeResnet20(std::span<const int64_t> example_shape, int64_t class_count,
                                     uint64_t seed);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_RESNET20_H_
