// TensorGradient: a tensor's gradient as backward hands it over. It lies where the parameters do:
// in the host's memory, or on a device, which may still be computing it.
#ifndef THINWIRE_CLIENT_TENSOR_GRADIENT_H_
#define THINWIRE_CLIENT_TENSOR_GRADIENT_H_

#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"

namespace thinwire {

struct TensorGradient {
  std::span<const float> values;
  std::shared_ptr<const void> owner;  // keeps them alive; null: whoever hands them over does
  // Returns when the values are there, from whichever thread it is called. Errors: the device's.
  // None: they are there already, as always in the host's memory.
  std::function<absl::Status()> wait;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TENSOR_GRADIENT_H_
