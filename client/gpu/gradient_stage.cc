#include "client/gpu/gradient_stage.h"

#include "client/gpu/device_segments.h"
#include "client/gpu/device_status.h"
#include "client/gpu/reserve.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/finite.h"
#include "kernels/cuda/ops/reductions.h"
#include "kernels/cuda/runtime/in_order.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

cuda::Status GradientStage::Open() {
  return cuda::InOrder([&] { return stream_.Open(); }, [&] { return finite_.Allocate(1); },
                       [&] { return finite_on_host_.Allocate(1); },
                       [&] { return sum_on_host_.Allocate(1); });
}

absl::StatusOr<std::optional<std::span<const float>>> GradientStage::Bring(
    const ShardGradient& gradient, float factor, cuda::DeviceBuffer<float>& room) {
  std::span<const float> values;
  const cuda::Status status = cuda::InOrder(
      [&] { return Launch(gradient, factor, room, values); },
      [&] { return cuda::AllFinite(values, finite_.data(), stream_); },
      [&] { return cuda::CopyToHost(finite_.span(), finite_on_host_.span(), stream_); },
      [&] { return stream_.Wait(); });
  if (!status.ok()) return ToStatus(status);
  if (finite_on_host_.data()[0] == 0) return std::nullopt;
  return values;
}

cuda::Status GradientStage::Launch(const ShardGradient& gradient, float factor,
                                   cuda::DeviceBuffer<float>& room,
                                   std::span<const float>& values) {
  if (factor == 1 && gradient.segments.size() == 1) {
    const Segment& s = gradient.segments[0];
    values = gradient.tensors[s.tensor].subspan(s.offset, s.count);
    return {};
  }
  const cuda::Status status = GatherOnDevice(gradient.segments, gradient.tensors, room, stream_);
  if (!status.ok()) return status;
  const std::span<float> gathered = room.span().first(CountOf(gradient.segments));
  values = gathered;
  return factor == 1 ? cuda::Status() : cuda::Scale(factor, gathered, stream_);
}

absl::StatusOr<double> GradientStage::SumOfSquares(std::span<const float> gradient) {
  const size_t partial_count = cuda::PartialSumsOfSquares(gradient.size());
  const cuda::Status status = cuda::InOrder(
      [&] { return Reserve(1 + partial_count, sums_); },
      [&] {
        const auto partial = sums_.span().subspan(1, partial_count);
        return cuda::SumOfSquares(gradient, partial, sums_.data(), stream_);
      },
      [&] { return cuda::CopyToHost(sums_.span().first(1), sum_on_host_.span(), stream_); },
      [&] { return stream_.Wait(); });
  if (!status.ok()) return ToStatus(status);
  return sum_on_host_.data()[0];
}

}  // namespace thinwire::client::gpu
