// GradientStage prepares the gradient of a shard on the GPU before the gradient is encoded: it
// gathers the segments, multiplies the gradient by a factor, and checks that all values are finite.
// The host waits for the result of the check, so a gradient that is not finite changes no residual.
// The stage uses a stream of its own, so it does not wait for the encoding of the previous shard.
#ifndef THINWIRE_CLIENT_GPU_GRADIENT_STAGE_H_
#define THINWIRE_CLIENT_GPU_GRADIENT_STAGE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "client/encode/shard_encoder.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Not thread-safe.
class GradientStage {
 public:
  // Creates the CUDA stream and allocates memory. Call Open once, before any other function.
  kernels::cuda::Status Open();

  // Computes FACTOR * GRADIENT, waits for the result and returns it. The result is the gradient's
  // own memory if FACTOR is 1 and the gradient has a single segment, else BUFFER. Returns nullopt
  // if a value is not finite. Errors: CUDA errors.
  absl::StatusOr<std::optional<std::span<const float>>> Prepare(
      const ShardGradient& gradient, float factor, kernels::cuda::DeviceBuffer<float>& buffer);

  // Computes the sum of the squares of GRADIENT, which is in GPU memory, waits for the result and
  // returns it. Errors: CUDA errors.
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient);

 private:
  // Launches the gathering and scaling of the gradient. Sets VALUES to the memory of the result,
  // which is valid once stream_ has run these kernels.
  kernels::cuda::Status Launch(const ShardGradient& gradient, float factor,
                               kernels::cuda::DeviceBuffer<float>& buffer,
                               std::span<const float>& values);
  // Launches the check that all VALUES are finite, and waits for its result in finite_on_host_.
  kernels::cuda::Status Check(std::span<const float> values);
  kernels::cuda::Status LaunchSumOfSquares(std::span<const float> gradient);

  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<uint32_t> finite_;
  kernels::cuda::PinnedBuffer<uint32_t> finite_on_host_;
  kernels::cuda::DeviceBuffer<double> sums_;  // sums of squares: the total, then the partial sums
  kernels::cuda::PinnedBuffer<double> sum_on_host_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_GRADIENT_STAGE_H_
