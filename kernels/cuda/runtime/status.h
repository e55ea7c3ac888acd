// Status is the result of a CUDA runtime call or a kernel launch. Kernel libraries use it instead
// of absl::Status, because every kernel includes this header, and nvcc would have to parse the
// headers of Abseil for every kernel.
//
//   message()   returns, for example, "allocate device memory: out of memory"
//
// An OK status of a launch means only that the GPU accepted it. The next Stream::Wait() or
// Event::Wait() returns errors that occur during execution. Immutable.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_STATUS_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_STATUS_H_

#include <string>

namespace thinwire::kernels::cuda {

class [[nodiscard]] Status {
 public:
  Status() = default;
  // OPERATION names the attempted call in messages and must be a string literal. ERROR is a
  // cudaError_t.
  Status(const char* operation, int error) : operation_(operation), error_(error) {}

  bool ok() const { return error_ == 0; }
  int error() const { return error_; }
  std::string message() const;

 private:
  const char* operation_ = "";
  int error_ = 0;
};

}  // namespace thinwire::kernels::cuda

// Returns the cuda::Status of EXPRESSION from the enclosing function unless it is OK.
#define RETURN_IF_CUDA_ERROR(expression)                                \
  do {                                                                  \
    const ::thinwire::kernels::cuda::Status cuda_status = (expression); \
    if (!cuda_status.ok()) {                                            \
      return cuda_status;                                               \
    }                                                                   \
  } while (false)

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_STATUS_H_
