// What the convolutional networks want of an example.
#ifndef THINWIRE_WORKER_MODELS_IMAGE_SHAPE_H_
#define THINWIRE_WORKER_MODELS_IMAGE_SHAPE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Errors: InvalidArgument unless SHAPE is [channels, height, width] with height and width of at
// least 4. MODEL is how the error calls the network.
absl::Status CheckImageShape(const std::string& model, std::span<const int64_t> shape);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_IMAGE_SHAPE_H_
