#include "kernels/cuda/runtime/stream.h"

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

Stream::~Stream() {
  // The destructor ignores errors of launches that are still running, because no caller can receive
  // them.
  if (handle_ != nullptr) (void)cudaStreamDestroy(handle_);
}

// A non-blocking stream does not synchronize with the default stream, which other code of the
// process may use.
Status Stream::Open() {
  return {"create a stream", cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)};
}

Status Stream::Wait() const { return {"wait for a stream", cudaStreamSynchronize(handle_)}; }

Event::~Event() {
  if (handle_ != nullptr) (void)cudaEventDestroy(handle_);
}

Status Event::Open(bool timed) {
  return {"create an event",
          cudaEventCreateWithFlags(&handle_, timed ? cudaEventDefault : cudaEventDisableTiming)};
}

Status Event::Record(const Stream& stream) {
  return {"record an event", cudaEventRecord(handle_, stream.handle())};
}

Status Event::Wait() const { return {"wait for an event", cudaEventSynchronize(handle_)}; }

bool Event::Reached() const { return cudaEventQuery(handle_) != cudaErrorNotReady; }

Status Event::Delay(const Stream& stream) const {
  return {"delay a stream", cudaStreamWaitEvent(stream.handle(), handle_, 0)};
}

Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds) {
  return {"measure the time between events",
          cudaEventElapsedTime(&milliseconds, begin.handle_, end.handle_)};
}

}  // namespace thinwire::kernels::cuda
