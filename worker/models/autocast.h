// Autocast: while it lives, this thread's LibTorch operators compute in a lower precision where
// LibTorch's lists say that it is worth it and does no harm: convolutions and dense layers in that
// precision, what sums up many values in fp32. Parameters stay fp32 and are cast on the way in.
//
// It belongs around a forward pass alone: backward computes in what forward computed in. The casts
// of parameters are dropped with it, for their memory is another step's by the next forward. In
// fp32 it does nothing.
#ifndef THINWIRE_WORKER_MODELS_AUTOCAST_H_
#define THINWIRE_WORKER_MODELS_AUTOCAST_H_

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace thinwire {

// Not thread-safe.
class Autocast {
 public:
  // Throws what LibTorch throws where it has no autocast to PRECISION on DEVICE. REQUIRES: no other
  // Autocast lives in this thread.
  Autocast(at::DeviceType device, at::ScalarType precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const at::DeviceType device_;
  const bool enabled_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_AUTOCAST_H_
