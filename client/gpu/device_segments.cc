#include "client/gpu/device_segments.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

size_t CountOf(std::span<const Segment> segments) {
  size_t count = 0;
  for (const Segment& s : segments) count += s.count;
  return count;
}

cuda::Status GatherOnDevice(std::span<const Segment> segments,
                            std::span<const std::span<const float>> tensors,
                            cuda::DeviceBuffer<float>& to, const cuda::Stream& stream) {
  RETURN_IF_CUDA_ERROR(to.Reserve(CountOf(segments)));
  std::span<float> left = to.span();
  for (const Segment& s : segments) {
    const auto from = tensors[s.tensor].subspan(s.offset, s.count);
    RETURN_IF_CUDA_ERROR(cuda::CopyOnDevice(from, left.first(s.count), stream));
    left = left.subspan(s.count);
  }
  return {};
}

cuda::Status ScatterOnDevice(std::span<const float> values, std::span<const Segment> segments,
                             std::span<const std::span<float>> tensors,
                             const cuda::Stream& stream) {
  for (const Segment& s : segments) {
    const auto to = tensors[s.tensor].subspan(s.offset, s.count);
    RETURN_IF_CUDA_ERROR(cuda::CopyOnDevice(values.first(s.count), to, stream));
    values = values.subspan(s.count);
  }
  return {};
}

}  // namespace thinwire::client::gpu
