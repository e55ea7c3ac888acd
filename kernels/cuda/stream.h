// Stream: owns a CUDA stream. What is launched on it runs in that order, later; only Wait waits.
// Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_STREAM_H_
#define THINWIRE_KERNELS_CUDA_STREAM_H_

#include "kernels/cuda/status.h"

struct CUstream_st;  // NVIDIA's

namespace thinwire::kernels::cuda {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // Before anything else, once.
  Status Open();

  // Returns when all that was launched so far has run, with the error of any of it.
  Status Wait() const;

  CUstream_st* handle() const { return handle_; }

 private:
  CUstream_st* handle_ = nullptr;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_STREAM_H_
