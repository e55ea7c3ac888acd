// Wrappers for the parts of LibTorch's runtime that differ between its versions or are easy to
// misuse: exceptions, mixed precision, and waiting for a device.
#ifndef THINWIRE_WORKER_MODELS_LIBTORCH_H_
#define THINWIRE_WORKER_MODELS_LIBTORCH_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <exception>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "worker/datasets/values.h"

namespace thinwire {

// Returns the name of a tensor's type and its sizes for an error message: "Float [2, 10]".
std::string FormText(const at::Tensor& tensor);

// Returns LibTorch's name of a type of values.
c10::ScalarType TorchType(ValueType type);

// Converts an exception of LibTorch to the status InvalidArgument "PLACE: MESSAGE". MESSAGE is the
// line of the exception's message that names the error. A longer message is logged.
absl::Status TorchError(const std::string& place, const std::exception& error);

// While an Autocast object exists, some operators that its thread calls compute in a lower
// precision. LibTorch selects operators that are safe and faster in this precision, such as
// convolutions and dense layers; sums over many values stay in fp32. Parameters remain fp32 and are
// cast when an operator uses them. If the precision is fp32, Autocast has no effect.
//
// Use Autocast only around a forward pass; the backward pass uses the precisions that the forward
// pass recorded. The destructor deletes LibTorch's cached casts of parameters, because the next
// step overwrites the parameters. Not thread-safe.
class Autocast {
 public:
  // Enables `precision` on `device`. Throws LibTorch's exception if the device does not support the
  // precision. REQUIRES: no other Autocast object exists in this thread.
  Autocast(c10::DeviceType device, c10::ScalarType precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const c10::DeviceType device_;
  const bool enabled_;
};

// Marks the current end of the calling thread's stream on `device`. Returns a function that blocks
// until the device has executed all work before the mark, and that returns Internal if the work
// failed. Any thread may call the returned function. On the CPU RecordCompletion returns null,
// because LibTorch's functions return only when their work is done. Throws LibTorch's exceptions.
std::function<absl::Status()> RecordCompletion(c10::Device device);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_LIBTORCH_H_
