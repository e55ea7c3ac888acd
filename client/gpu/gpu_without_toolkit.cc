#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/gpu/gpu.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<const Device>> OpenGpu(int number) {
  return absl::UnimplementedError(
      absl::StrCat("cuda:", number, ": thinwire was built without the CUDA toolkit"));
}

}  // namespace thinwire
