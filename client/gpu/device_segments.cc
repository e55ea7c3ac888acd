#include "client/gpu/device_segments.h"

#include "client/gpu/reserve.h"
#include "kernels/cuda/runtime/memory.h"

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
  cuda::Status status = Reserve(CountOf(segments), to);
  std::span<float> rest = to.span();
  for (const Segment& s : segments) {
    if (!status.ok()) return status;
    const auto from = tensors[s.tensor].subspan(s.offset, s.count);
    status = cuda::CopyOnDevice(from, rest.first(s.count), stream);
    rest = rest.subspan(s.count);
  }
  return status;
}

cuda::Status ScatterOnDevice(std::span<const float> values, std::span<const Segment> segments,
                             std::span<const std::span<float>> tensors,
                             const cuda::Stream& stream) {
  for (const Segment& s : segments) {
    const auto to = tensors[s.tensor].subspan(s.offset, s.count);
    const cuda::Status status = cuda::CopyOnDevice(values.first(s.count), to, stream);
    if (!status.ok()) return status;
    values = values.subspan(s.count);
  }
  return {};
}

}  // namespace thinwire::client::gpu
