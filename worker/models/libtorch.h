// The parts of LibTorch's runtime that differ between its versions or need care: exceptions, mixed
// precision, and waiting for a device.
#ifndef THINWIRE_WORKER_MODELS_LIBTORCH_H_
#define THINWIRE_WORKER_MODELS_LIBTORCH_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <exception>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Returns InvalidArgument "PLACE: MESSAGE" for an exception of LibTorch, without its C++ backtrace.
absl::Status TorchError(const std::string& place, const std::exception& error);

// While an Autocast object exists, the operators of this thread compute in a lower precision where
// LibTorch considers it safe and profitable: convolutions and dense layers do, sums over many
// values stay in fp32. Parameters remain fp32 and are cast on use. With fp32 it has no effect.
//
// Use it around a forward pass only; backward uses the precisions that forward recorded. The
// destructor drops the cached casts of parameters, because the next step overwrites the parameters.
// Not thread-safe.
class Autocast {
 public:
  // Throws LibTorch's exception if the device does not support the precision. REQUIRES: no other
  // Autocast object exists in this thread.
  Autocast(c10::DeviceType device, c10::ScalarType precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const c10::DeviceType device_;
  const bool enabled_;
};

// Marks the current end of the calling thread's stream on `device` and returns a function that
// blocks until the device has executed everything before the mark. The function may be called from
// any thread and returns Internal if that work failed. On the CPU, where work is done when LibTorch
// returns, the result is null. Throws LibTorch's exceptions.
std::function<absl::Status()> RecordCompletion(c10::Device device);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LIBTORCH_H_
