#include "client/gpu/gradient_stage.h"

#include "client/gpu/device_segments.h"
#include "client/gpu/device_status.h"
#include "common/base/status_macros.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/finite.h"
#include "kernels/cuda/ops/reductions.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

cuda::Status GradientStage::Open() {
  RETURN_IF_CUDA_ERROR(stream_.Open());
  RETURN_IF_CUDA_ERROR(finite_.Allocate(1));
  RETURN_IF_CUDA_ERROR(finite_on_host_.Allocate(1));
  return sum_on_host_.Allocate(1);
}

absl::StatusOr<std::optional<std::span<const float>>> GradientStage::Prepare(
    const ShardGradient& gradient, float factor, cuda::DeviceBuffer<float>& buffer) {
  std::span<const float> values;
  RETURN_IF_ERROR(ToStatus(Launch(gradient, factor, buffer, values)));
  RETURN_IF_ERROR(ToStatus(Check(values)));
  if (finite_on_host_.data()[0] == 0) return std::nullopt;
  return values;
}

cuda::Status GradientStage::Launch(const ShardGradient& gradient, float factor,
                                   cuda::DeviceBuffer<float>& buffer,
                                   std::span<const float>& values) {
  if (factor == 1 && gradient.segments.size() == 1) {
    const Segment& s = gradient.segments[0];
    values = gradient.tensors[s.tensor].subspan(s.offset, s.count);
    return {};
  }
  RETURN_IF_CUDA_ERROR(GatherOnDevice(gradient.segments, gradient.tensors, buffer, stream_));
  const std::span<float> gathered = buffer.span().first(CountOf(gradient.segments));
  values = gathered;
  return factor == 1 ? cuda::Status() : cuda::Scale(factor, gathered, stream_);
}

cuda::Status GradientStage::Check(std::span<const float> values) {
  RETURN_IF_CUDA_ERROR(cuda::AllFinite(values, finite_.data(), stream_));
  RETURN_IF_CUDA_ERROR(cuda::CopyToHost(finite_.span(), finite_on_host_.span(), stream_));
  return stream_.Wait();
}

absl::StatusOr<double> GradientStage::SumOfSquares(std::span<const float> gradient) {
  RETURN_IF_ERROR(ToStatus(LaunchSumOfSquares(gradient)));
  RETURN_IF_ERROR(ToStatus(stream_.Wait()));
  return sum_on_host_.data()[0];
}

cuda::Status GradientStage::LaunchSumOfSquares(std::span<const float> gradient) {
  const size_t partial_count = cuda::PartialSumsOfSquares(gradient.size());
  RETURN_IF_CUDA_ERROR(sums_.Reserve(1 + partial_count));
  const auto partial = sums_.span().subspan(1, partial_count);
  RETURN_IF_CUDA_ERROR(cuda::SumOfSquares(gradient, partial, sums_.data(), stream_));
  return cuda::CopyToHost(sums_.span().first(1), sum_on_host_.span(), stream_);
}

}  // namespace thinwire::client::gpu
