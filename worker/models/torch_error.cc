#include "worker/models/torch_error.h"

#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::Status TorchError(const std::string& where, const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string message = torch != nullptr ? torch->what_without_backtrace() : error.what();
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", message));
}

}  // namespace thinwire
