#include "client/gpu/device_parameters.h"

#include <algorithm>
#include <variant>

#include "client/gpu/device_segments.h"
#include "client/gpu/device_status.h"
#include "client/replica/host_parameters.h"
#include "client/replica/shard_values.h"
#include "common/base/status_macros.h"
#include "common/model/value_hash.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Rounds a number of floats up to a multiple of 256 bytes, because every tensor begins at such a
// multiple.
uint64_t RoundedUp(uint64_t value_count) { return (value_count + 63) / 64 * 64; }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceParameters>> DeviceParameters::Make(
    const Partition& partition) {
  std::unique_ptr<DeviceParameters> parameters(new DeviceParameters(partition));
  RETURN_IF_ERROR(ToStatus(parameters->Open()));
  return parameters;
}

DeviceParameters::DeviceParameters(const Partition& partition)
    : partition_(partition),
      changed_(partition.shard_count()),
      unchanged_count_(partition.shard_count()) {}

cuda::Status DeviceParameters::Open() {
  uint64_t count = 0;
  for (const TensorShape& t : partition_.tensors()) count += RoundedUp(t.value_count());
  RETURN_IF_CUDA_ERROR(stream_.Open());
  RETURN_IF_CUDA_ERROR(memory_.Allocate(count));
  RETURN_IF_CUDA_ERROR(cuda::Clear(std::as_writable_bytes(memory_.span()), stream_));
  RETURN_IF_CUDA_ERROR(stream_.Wait());
  std::span<float> left = memory_.span();
  for (const TensorShape& t : partition_.tensors()) {
    tensors_.push_back(left.first(t.value_count()));
    left = left.subspan(RoundedUp(t.value_count()));
  }
  return {};
}

absl::Status DeviceParameters::Fill(std::span<const std::span<const float>> values) {
  initial_.clear();
  changed_.assign(changed_.size(), false);
  unchanged_count_ = partition_.shard_count();
  for (const std::span<const float> tensor : values) {
    initial_.emplace_back(tensor.begin(), tensor.end());
  }
  return ToStatus(Upload());
}

cuda::Status DeviceParameters::Upload() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    RETURN_IF_CUDA_ERROR(cuda::CopyToDevice(initial_[i], tensors_[i], stream_));
  }
  return stream_.Wait();
}

ByteChain DeviceParameters::SeedPayload(ShardId shard) const {
  const std::vector<std::span<const float>> tensors(initial_.begin(), initial_.end());
  return Fp32Payload(partition_.segments(shard), tensors);
}

absl::StatusOr<uint64_t> DeviceParameters::Apply(const ParameterChange& change) {
  RETURN_IF_ERROR(ToStatus(Launch(change)));
  RETURN_IF_ERROR(ToStatus(stream_.Wait()));
  ForgetInitial(change.shard);
  if (!change.wants_hash) return 0;
  return HashValues(on_host_.span().first(partition_.value_count(change.shard)));
}

cuda::Status DeviceParameters::Launch(const ParameterChange& change) {
  const std::vector<Segment>& segments = partition_.segments(change.shard);
  std::span<float> values = InPlace(segments, tensors_);
  const bool in_place = !values.empty();
  if (!in_place) {
    const std::vector<std::span<const float>> tensors(tensors_.begin(), tensors_.end());
    RETURN_IF_CUDA_ERROR(GatherOnDevice(segments, tensors, gathered_, stream_));
    values = gathered_.span().first(CountOf(segments));
  }
  RETURN_IF_CUDA_ERROR(Decode(change, values));
  if (!in_place) RETURN_IF_CUDA_ERROR(ScatterOnDevice(values, segments, tensors_, stream_));
  if (!change.wants_hash) return {};
  RETURN_IF_CUDA_ERROR(on_host_.Reserve(values.size()));
  return cuda::CopyToHost(values, on_host_.span().first(values.size()), stream_);
}

cuda::Status DeviceParameters::Decode(const ParameterChange& change, std::span<float> values) {
  if (const auto* delta = std::get_if<UlpDelta>(&change.values)) {
    return stage_.Apply(*delta, values, stream_);
  }
  const auto& payload = std::get<CheckedPayload>(change.values);
  if (change.adds) return stage_.DecodeAdd(payload, values, stream_);
  return stage_.Decode(payload, values, stream_);
}

void DeviceParameters::ForgetInitial(ShardId shard) {
  if (changed_[shard.value]) return;
  changed_[shard.value] = true;
  if (--unchanged_count_ == 0) std::vector<std::vector<float>>().swap(initial_);
}

}  // namespace thinwire::client::gpu
