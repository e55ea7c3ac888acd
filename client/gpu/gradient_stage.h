// GradientStage: what a shard's gradient goes through on the GPU before it is encoded: it is
// gathered where it lies in several tensors, multiplied, and found finite or not. That is known to
// the host before anything that is remembered changes, and takes a stream of its own, on which
// nothing waits for the shard before.
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
  // Before anything else, once.
  kernels::cuda::Status Open();

  // FACTOR * GRADIENT, when it is there: GRADIENT's own memory, or ROOM; nothing where a value is
  // not finite. Errors: the device's.
  absl::StatusOr<std::optional<std::span<const float>>> Bring(
      const ShardGradient& gradient, float factor, kernels::cuda::DeviceBuffer<float>& room);

  // Errors: the device's.
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient);

 private:
  kernels::cuda::Status Launch(const ShardGradient& gradient, float factor,
                               kernels::cuda::DeviceBuffer<float>& room,
                               std::span<const float>& values);

  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<uint32_t> finite_;
  kernels::cuda::PinnedBuffer<uint32_t> finite_on_host_;
  kernels::cuda::DeviceBuffer<double> sums_;  // partial ones, behind the sum of all
  kernels::cuda::PinnedBuffer<double> sum_on_host_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_GRADIENT_STAGE_H_
