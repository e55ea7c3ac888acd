// Status: whether a call of the CUDA runtime did what it was asked for. The kernels use no Abseil,
// and nvcc reads this header with every kernel.
//
//   message()   "allocate on the device: out of memory"
//
// A launch that was accepted may still fail while it runs: the next wait for its stream tells.
// Immutable.
#ifndef THINWIRE_KERNELS_CUDA_STATUS_H_
#define THINWIRE_KERNELS_CUDA_STATUS_H_

#include <string>

namespace thinwire::kernels::cuda {

class [[nodiscard]] Status {
 public:
  Status() = default;
  // ERROR is a cudaError_t. REQUIRES: ATTEMPT, what was asked for, is a literal.
  Status(const char* attempt, int error) : attempt_(attempt), error_(error) {}

  bool ok() const { return error_ == 0; }
  int error() const { return error_; }
  std::string message() const;

 private:
  const char* attempt_ = "";
  int error_ = 0;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_STATUS_H_
