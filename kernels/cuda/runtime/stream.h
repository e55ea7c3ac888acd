// Owners of CUDA streams and events.
//
//   Stream   a queue of kernels and copies; the GPU executes them in the order of their launch
//   Event    a mark in a stream; the host and other streams can wait for it
//
// Launches return at once. Only Wait() blocks the host. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_STREAM_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_STREAM_H_

#include "kernels/cuda/runtime/status.h"

struct CUstream_st;  // opaque type of the CUDA runtime
struct CUevent_st;   // opaque type of the CUDA runtime

namespace thinwire::kernels::cuda {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // Creates the stream. Call it once, before any other function.
  Status Open();

  // Blocks until all kernels and copies launched so far have run. Returns the first error among
  // these launches.
  Status Wait() const;

  CUstream_st* handle() const { return handle_; }

 private:
  CUstream_st* handle_ = nullptr;
};

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Creates the event. Call it once, before any other function. MillisecondsBetween() accepts only
  // TIMED events, which are slightly slower.
  Status Open(bool timed = false);

  // Marks the current end of STREAM. Replaces the previous mark.
  Status Record(const Stream& stream);

  // Blocks until the GPU reaches the mark. Returns at once if Record() was never called.
  Status Wait() const;

  // Returns whether the GPU has reached the mark or failed before it.
  bool Reached() const;

  // Delays all later launches on STREAM until the GPU reaches the mark. Does not block the host.
  Status Delay(const Stream& stream) const;

 private:
  friend Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds);

  CUevent_st* handle_ = nullptr;
};

// Sets MILLISECONDS to the GPU time between two marks. REQUIRES: both events are timed and reached.
Status MillisecondsBetween(const Event& begin, const Event& end, float& milliseconds);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_STREAM_H_
