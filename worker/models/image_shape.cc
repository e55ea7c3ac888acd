#include "worker/models/image_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {

absl::Status CheckImageShape(const std::string& model, std::span<const int64_t> shape) {
  if (shape.size() == 3 && shape[0] >= 1 && shape[1] >= 4 && shape[2] >= 4) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(model, ": want examples of [channels, height, width], at least 4 by 4, got [",
                   absl::StrJoin(shape, ", "), "]"));
}

}  // namespace thinwire
