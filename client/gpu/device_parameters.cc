#include "client/gpu/device_parameters.h"

#include <algorithm>

#include "client/gpu/device_segments.h"
#include "client/gpu/device_status.h"
#include "client/gpu/reserve.h"
#include "client/replica/host_parameters.h"
#include "client/replica/shard_values.h"
#include "common/value_hash.h"
#include "kernels/cuda/runtime/in_order.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Tensors begin at multiples of 256 bytes.
uint64_t RoundedUp(uint64_t value_count) { return (value_count + 63) / 64 * 64; }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceParameters>> DeviceParameters::Make(
    const Partition& partition) {
  std::unique_ptr<DeviceParameters> parameters(new DeviceParameters(partition));
  if (absl::Status s = ToStatus(parameters->Open()); !s.ok()) return s;
  return parameters;
}

DeviceParameters::DeviceParameters(const Partition& partition)
    : partition_(partition), came_(partition.shard_count()), to_come_(partition.shard_count()) {}

cuda::Status DeviceParameters::Open() {
  uint64_t count = 0;
  for (const TensorShape& t : partition_.tensors()) count += RoundedUp(t.value_count());
  const cuda::Status status =
      cuda::InOrder([&] { return stream_.Open(); }, [&] { return memory_.Allocate(count); },
                    [&] { return cuda::Clear(std::as_writable_bytes(memory_.span()), stream_); },
                    [&] { return stream_.Wait(); });
  if (!status.ok()) return status;
  std::span<float> rest = memory_.span();
  for (const TensorShape& t : partition_.tensors()) {
    tensors_.push_back(rest.first(t.value_count()));
    rest = rest.subspan(RoundedUp(t.value_count()));
  }
  return {};
}

absl::Status DeviceParameters::Fill(std::span<const std::span<const float>> values) {
  for (const std::span<const float> tensor : values) {
    initial_.emplace_back(tensor.begin(), tensor.end());
  }
  return ToStatus(Upload());
}

cuda::Status DeviceParameters::Upload() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const cuda::Status status = cuda::CopyToDevice(initial_[i], tensors_[i], stream_);
    if (!status.ok()) return status;
  }
  return stream_.Wait();
}

ByteChain DeviceParameters::SeedPayload(ShardId shard) const {
  const std::vector<std::span<const float>> tensors(initial_.begin(), initial_.end());
  return Fp32Payload(partition_.segments(shard), tensors);
}

absl::StatusOr<uint64_t> DeviceParameters::Apply(const ParameterChange& change) {
  const bool is_hashed = change.wants_hash;
  const size_t count = partition_.value_count(change.shard);
  const cuda::Status status =
      cuda::InOrder([&] { return is_hashed ? Reserve(count, on_host_) : cuda::Status(); },
                    [&] { return Launch(change); }, [&] { return stream_.Wait(); });
  if (!status.ok()) return ToStatus(status);
  ForgetInitial(change.shard);
  return is_hashed ? HashValues(on_host_.span().first(count)) : 0;
}

cuda::Status DeviceParameters::Launch(const ParameterChange& change) {
  const std::vector<Segment>& segments = partition_.segments(change.shard);
  std::span<float> values = InPlace(segments, tensors_);
  const bool in_place = !values.empty();
  cuda::Status status;
  if (!in_place) {
    const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
    status = GatherOnDevice(segments, tensors, gathered_, stream_);
    if (!status.ok()) return status;
    values = gathered_.span().first(CountOf(segments));
  }
  return cuda::InOrder(
      [&] { return Decode(change, values); },
      [&] {
        return in_place ? cuda::Status() : ScatterOnDevice(values, segments, tensors_, stream_);
      },
      [&] {
        const auto on_host = on_host_.span().first(change.wants_hash ? values.size() : 0);
        return cuda::CopyToHost(values.first(on_host.size()), on_host, stream_);
      });
}

cuda::Status DeviceParameters::Decode(const ParameterChange& change, std::span<float> values) {
  if (const auto* delta = std::get_if<UlpDelta>(&change.values)) {
    return stage_.Move(*delta, values, stream_);
  }
  const auto& payload = std::get<CheckedPayload>(change.values);
  if (change.adds) return stage_.DecodeAdd(payload, values, stream_);
  return stage_.Decode(payload, values, stream_);
}

void DeviceParameters::ForgetInitial(ShardId shard) {
  if (came_[shard.value]) return;
  came_[shard.value] = true;
  if (--to_come_ == 0) std::vector<std::vector<float>>().swap(initial_);
}

}  // namespace thinwire::client::gpu
