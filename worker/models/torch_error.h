// What LibTorch throws, as a Status.
#ifndef THINWIRE_WORKER_MODELS_TORCH_ERROR_H_
#define THINWIRE_WORKER_MODELS_TORCH_ERROR_H_

#include <exception>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

// InvalidArgument "WHERE: message", without LibTorch's C++ backtrace.
absl::Status TorchError(const std::string& where, const std::exception& error);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_TORCH_ERROR_H_
