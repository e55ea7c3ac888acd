// GradientStage prepares the gradient of a shard on the GPU before it is encoded: gathers its
// segments, multiplies it by a factor, and checks that all values are finite. The host waits for
// the result of the check, so a gradient that is not finite changes no residual. The stage has its
// own stream, so it does not wait for the encoding of the previous shard.
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
  // Creates the stream and its memory. Call it once, before any other function.
  kernels::cuda::Status Open();

  // Waits for and returns FACTOR * GRADIENT: in the gradient's own memory if that is possible
  // without copying, else in BUFFER. Returns nullopt if a value is not finite. Errors: CUDA errors.
  absl::StatusOr<std::optional<std::span<const float>>> Prepare(
      const ShardGradient& gradient, float factor, kernels::cuda::DeviceBuffer<float>& buffer);

  // Waits for and returns the sum of the squares of GRADIENT, in GPU memory. Errors: CUDA errors.
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient);

 private:
  // Launches the preparation and sets VALUES to its result.
  kernels::cuda::Status Launch(const ShardGradient& gradient, float factor,
                               kernels::cuda::DeviceBuffer<float>& buffer,
                               std::span<const float>& values);
  // Launches the check and waits for its answer, which is then in finite_on_host_.
  kernels::cuda::Status Check(std::span<const float> values);
  kernels::cuda::Status LaunchSumOfSquares(std::span<const float> gradient);

  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<uint32_t> finite_;
  kernels::cuda::PinnedBuffer<uint32_t> finite_on_host_;
  kernels::cuda::DeviceBuffer<double> sums_;  // the total, then the partial sums
  kernels::cuda::PinnedBuffer<double> sum_on_host_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_GRADIENT_STAGE_H_
