#include "client/gpu/device_segments.h"

#include "client/gpu/reserve.h"
#include "kernels/cuda/copy.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Calls copy(from, to) for each segment.
template <typename Buffer, typename Copy>
cuda::Status GatherBy(const Copy& copy, std::span<const Segment> segments,
                      std::span<const std::span<const float>> tensors, Buffer& to) {
  cuda::Status status = Reserve(CountOf(segments), to);
  std::span<float> rest = to.span();
  for (const Segment& s : segments) {
    if (!status.ok()) return status;
    status = copy(tensors[s.tensor].subspan(s.offset, s.count), rest.first(s.count));
    rest = rest.subspan(s.count);
  }
  return status;
}

}  // namespace

size_t CountOf(std::span<const Segment> segments) {
  size_t count = 0;
  for (const Segment& s : segments) count += s.count;
  return count;
}

cuda::Status GatherOnDevice(std::span<const Segment> segments,
                            std::span<const std::span<const float>> tensors,
                            cuda::DeviceBuffer<float>& to, const cuda::Stream& stream) {
  const auto copy = [&](std::span<const float> from, std::span<float> part) {
    return cuda::CopyOnDevice(from, part, stream);
  };
  return GatherBy(copy, segments, tensors, to);
}

cuda::Status GatherToHost(std::span<const Segment> segments,
                          std::span<const std::span<const float>> tensors,
                          cuda::PinnedBuffer<float>& to, const cuda::Stream& stream) {
  const auto copy = [&](std::span<const float> from, std::span<float> part) {
    return cuda::CopyToHost(from, part, stream);
  };
  return GatherBy(copy, segments, tensors, to);
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
