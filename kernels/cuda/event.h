// Event: owns a CUDA event, a mark in a stream that the host and other streams can wait for.
// Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_EVENT_H_
#define THINWIRE_KERNELS_CUDA_EVENT_H_

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

struct CUevent_st;  // NVIDIA's

namespace thinwire::kernels::cuda {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Before anything else, once. One that is TIMED costs a little more.
  Status Open(bool timed = false);

  // Marks what was launched on STREAM so far; a mark of before is forgotten.
  Status Record(const Stream& stream);

  // Returns when it has run. Never recorded: at once.
  Status Wait() const;
  // Whether it has run, or failed.
  bool Reached() const;
  // What is launched on STREAM from now on runs after the mark.
  Status HoldBack(const Stream& stream) const;

 private:
  friend Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds);

  CUevent_st* handle_ = nullptr;
};

// The device's time between two marks. REQUIRES: both are timed and have been reached.
Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_EVENT_H_
