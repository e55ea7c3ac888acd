#include "kernels/cuda/event.h"

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {

Event::~Event() {
  if (handle_ != nullptr) (void)cudaEventDestroy(handle_);
}

Status Event::Open(bool timed) {
  return {"open an event",
          cudaEventCreateWithFlags(&handle_, timed ? cudaEventDefault : cudaEventDisableTiming)};
}

Status Event::Record(const Stream& stream) {
  return {"record an event", cudaEventRecord(handle_, stream.handle())};
}

Status Event::Wait() const { return {"wait for an event", cudaEventSynchronize(handle_)}; }

bool Event::Reached() const { return cudaEventQuery(handle_) != cudaErrorNotReady; }

Status Event::HoldBack(const Stream& stream) const {
  return {"hold a stream back", cudaStreamWaitEvent(stream.handle(), handle_, 0)};
}

Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds) {
  return {"measure between events",
          cudaEventElapsedTime(&milliseconds, begin.handle_, end.handle_)};
}

}  // namespace thinwire::kernels::cuda
