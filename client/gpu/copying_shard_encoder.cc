#include "client/gpu/copying_shard_encoder.h"

#include "client/gpu/device_segments.h"
#include "client/gpu/device_status.h"
#include "kernels/cuda/in_order.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

absl::StatusOr<std::unique_ptr<CopyingShardEncoder>> CopyingShardEncoder::Make(
    const Partition& partition, const ClientOptions& options) {
  std::unique_ptr<CopyingShardEncoder> encoder(new CopyingShardEncoder(partition, options));
  if (absl::Status s = ToStatus(encoder->stream_.Open()); !s.ok()) return s;
  return encoder;
}

absl::StatusOr<std::span<const float>> CopyingShardEncoder::Copy(
    std::span<const Segment> segments, std::span<const std::span<const float>> tensors) {
  const cuda::Status status =
      cuda::InOrder([&] { return GatherToHost(segments, tensors, copied_, stream_); },
                    [&] { return stream_.Wait(); });
  if (!status.ok()) return ToStatus(status);
  return copied_.span().first(CountOf(segments));
}

absl::Status CopyingShardEncoder::Begin(const Work& work) {
  const auto copied = Copy(work.gradient.segments, work.gradient.tensors);
  if (!copied.ok()) return copied.status();
  const Segment whole = {.tensor = 0, .offset = 0, .count = copied->size()};
  Work on_host = work;
  on_host.gradient = {.segments = {&whole, 1}, .tensors = {&*copied, 1}};
  return host_.Begin(on_host);
}

absl::StatusOr<double> CopyingShardEncoder::SumOfSquares(std::span<const float> gradient) {
  const Segment whole = {.tensor = 0, .offset = 0, .count = gradient.size()};
  const auto copied = Copy({&whole, 1}, {&gradient, 1});
  if (!copied.ok()) return copied.status();
  return host_.SumOfSquares(*copied);
}

}  // namespace thinwire::client::gpu
