#include "client/gpu/device_shard_encoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/gpu/device_status.h"
#include "client/gpu/pinned_pool.h"
#include "client/gpu/reserve.h"
#include "common/codec/codec.h"
#include "kernels/cuda/ops/accumulate_momentum.h"
#include "kernels/cuda/ops/sparse.h"
#include "kernels/cuda/runtime/in_order.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Where a payload begins so that its codes begin at a multiple of 16 bytes.
size_t OffsetOf(const DeviceCodec& codec, size_t count) {
  return (16 - codec.CodesOffset(count) % 16) % 16;
}

cuda::Status ClearFloats(std::span<float> values, const cuda::Stream& stream) {
  return cuda::Clear(std::as_writable_bytes(values), stream);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceShardEncoder>> DeviceShardEncoder::Make(
    const Partition& partition, const ClientOptions& options) {
  std::unique_ptr<DeviceShardEncoder> encoder(new DeviceShardEncoder(partition, options));
  if (absl::Status s = ToStatus(encoder->Open()); !s.ok()) return s;
  return encoder;
}

DeviceShardEncoder::DeviceShardEncoder(const Partition& partition, const ClientOptions& options)
    : correction_(options.correction),
      keep_error_(options.error_feedback),
      pool_(PinnedPool()),
      on_host_(partition.shard_count()) {
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    shards_.push_back({.count = partition.value_count(ShardId{s})});
  }
}

cuda::Status DeviceShardEncoder::Open() {
  for (Slot& slot : slots_) {
    const cuda::Status status =
        cuda::InOrder([&] { return slot.done.Open(); }, [&] { return slot.size.Allocate(1); },
                      [&] { return slot.size_on_host.Allocate(1); });
    if (!status.ok()) return status;
  }
  return cuda::InOrder(
      [&] { return gradients_.Open(); }, [&] { return stream_.Open(); },
      [&] { return collect_from_.Allocate(shards_.size()); },
      [&] { return cuda::Clear(std::as_writable_bytes(collect_from_.span()), stream_); });
}

absl::StatusOr<const DeviceCodec*> DeviceShardEncoder::CodecOf(const CodecSpec& spec) {
  for (const auto& [made, codec] : codecs_) {
    if (made == spec) return codec.get();
  }
  absl::StatusOr<std::unique_ptr<const DeviceCodec>> codec = DeviceCodec::Make(spec);
  if (!codec.ok()) return codec.status();
  if (codecs_.size() == kCodecs) codecs_.pop_front();
  codecs_.emplace_back(spec, *std::move(codec));
  return codecs_.back().second.get();
}

absl::Status DeviceShardEncoder::Begin(const Work& work) {
  const absl::StatusOr<const DeviceCodec*> codec = CodecOf(work.spec);
  if (!codec.ok()) return codec.status();
  Slot& slot = slots_[(oldest_ + begun_count_) % kSlots];
  const auto values = gradients_.Bring(work.gradient, work.factor, slot.room);
  if (!values.ok()) return values.status();
  ++begun_count_;
  slot.shard = work.shard;
  slot.finite = values->has_value();
  if (!slot.finite) return absl::OkStatus();
  slot.owner = work.gradient.owner;
  const size_t most = (*codec)->MaxPayloadBytes((*values)->size());
  slot.out = pool_.Take(most);
  if (slot.out == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("CUDA: allocate pinned memory: want ", most, " bytes"));
  }
  return ToStatus(Encode(**codec, work, **values, slot));
}

cuda::Status DeviceShardEncoder::Correct(ShardMemory& memory, std::span<const float>& values) {
  if (!correction_.enabled) return {};
  cuda::Status status;
  if (memory.momentum.size() == 0) {
    status = memory.momentum.Allocate(memory.count);
    if (status.ok()) status = ClearFloats(memory.momentum.span(), stream_);
  }
  if (!status.ok()) return status;
  const std::span<const float> gradient = values;
  if (!correction_.nesterov) {
    values = memory.momentum.span();
    return cuda::AccumulateMomentum(correction_.momentum, gradient, memory.momentum.span(),
                                    stream_);
  }
  status = Reserve(memory.count, direction_);
  if (!status.ok()) return status;
  const std::span<float> direction = direction_.span().first(memory.count);
  values = direction;
  return cuda::AccumulateNesterov(correction_.momentum, gradient, memory.momentum.span(), direction,
                                  stream_);
}

cuda::Status DeviceShardEncoder::Owe(ShardMemory& memory) {
  if (memory.owes) return {};
  const cuda::Status status = Reserve(memory.count, memory.residual);
  if (!status.ok()) return status;
  memory.owes = true;
  return ClearFloats(memory.residual.span(), stream_);
}

// What ErrorFeedback::Encode and MomentumCorrection do, and the payload's way to the host.
cuda::Status DeviceShardEncoder::Encode(const DeviceCodec& codec, const Work& work,
                                        std::span<const float> values, Slot& slot) {
  ShardMemory& memory = shards_[work.shard.value];
  const bool leaves_nothing = codec.twin().lossless() || !keep_error_;
  const bool feeds_back = memory.owes || !leaves_nothing;
  const size_t offset = OffsetOf(codec, memory.count);
  const auto payload = [&] { return slot.payload.span().subspan(offset, slot.out->size); };
  return cuda::InOrder(
      [&] { return Reserve(offset + slot.out->size, slot.payload); },
      [&] { return Reserve(codec.WorkspaceBytes(memory.count), workspace_); },
      [&] { return Correct(memory, values); },
      [&] { return feeds_back ? Owe(memory) : cuda::Status(); },
      [&] {
        const std::span<float> residual =
            memory.residual.span().first(feeds_back ? memory.count : 0);
        memory.owes = !leaves_nothing;
        return codec.Encode(values, residual, work.keys, &collect_from_.data()[work.shard.value],
                            workspace_.span(), payload(), slot.size.data(), stream_);
      },
      [&] { return cuda::CopyBytesToHost(payload(), slot.out->span(), stream_); },
      [&] { return cuda::CopyToHost(slot.size.span(), slot.size_on_host.span(), stream_); },
      [&] { return slot.done.Record(stream_); });
}

absl::StatusOr<std::optional<ByteChain>> DeviceShardEncoder::Finish() {
  Slot& slot = slots_[oldest_];
  oldest_ = (oldest_ + 1) % kSlots;
  --begun_count_;
  if (!slot.finite) return std::nullopt;
  if (absl::Status s = ToStatus(slot.done.Wait()); !s.ok()) return s;
  slot.owner.reset();
  ByteChain payload(slot.out->span().first(slot.size_on_host.data()[0]), slot.out);
  slot.out.reset();
  if (absl::Status s = ToStatus(Mask(payload, slot)); !s.ok()) return s;
  return payload;
}

// momentum = 0 where the payload BYTES has an entry, as MomentumCorrection::Sent.
cuda::Status DeviceShardEncoder::Mask(const ByteChain& bytes, Slot& slot) {
  if (!correction_.enabled || !correction_.factor_masking) return {};
  ShardMemory& memory = shards_[slot.shard.value];
  const CheckedPayload payload = EncodedPayload(bytes, memory.count);
  if (!PayloadIsSparse(payload)) return {};
  slot.sent.clear();
  ForEachPayloadEntry(payload, [&](std::span<const uint32_t> indices, std::span<const float>) {
    slot.sent.insert(slot.sent.end(), indices.begin(), indices.end());
  });
  const size_t count = slot.sent.size();
  return cuda::InOrder(
      [&] { return Reserve(count, indices_); }, [&] { return Reserve(count, kept_); },
      [&] { return cuda::CopyToDevice(slot.sent, indices_.span().first(count), stream_); },
      [&] { return ClearFloats(kept_.span().first(count), stream_); },
      [&] {
        return cuda::Scatter(indices_.span().first(count), kept_.span().first(count), 1.0f,
                             memory.momentum.span(), stream_);
      });
}

absl::Status DeviceShardEncoder::GiveBack(ShardId shard, const CheckedPayload& payload,
                                          std::span<const uint32_t> taken) {
  return ToStatus(AddBack(shards_[shard.value], payload, taken));
}

cuda::Status DeviceShardEncoder::AddBack(ShardMemory& memory, const CheckedPayload& payload,
                                         std::span<const uint32_t> taken) {
  const size_t count = taken.size();
  const auto indices = [&] { return indices_.span().first(count); };
  const auto kept = [&] { return kept_.span().first(count); };
  const auto residual = [&] { return memory.residual.span(); };
  return cuda::InOrder([&] { return Owe(memory); }, [&] { return Reserve(count, indices_); },
                       [&] { return Reserve(count, kept_); },
                       [&] { return cuda::CopyToDevice(taken, indices(), stream_); },
                       [&] { return cuda::Gather(residual(), indices(), kept(), stream_); },
                       [&] { return given_back_.DecodeAdd(payload, residual(), stream_); },
                       [&] { return cuda::Scatter(indices(), kept(), 1.0f, residual(), stream_); },
                       [&] { return stream_.Wait(); });
}

absl::StatusOr<double> DeviceShardEncoder::SumOfSquares(std::span<const float> gradient) {
  return gradients_.SumOfSquares(gradient);
}

absl::StatusOr<std::vector<ShardFeedback>> DeviceShardEncoder::feedback() {
  if (absl::Status s = ToStatus(CopyOwed()); !s.ok()) return s;
  std::vector<ShardFeedback> owed;
  for (const auto& [residual, momentum] : on_host_) owed.push_back({residual, momentum});
  return owed;
}

cuda::Status DeviceShardEncoder::CopyOwed() {
  for (size_t s = 0; s < shards_.size(); ++s) {
    const ShardMemory& memory = shards_[s];
    auto& [residual, momentum] = on_host_[s];
    residual.resize(memory.owes ? memory.count : 0);
    momentum.resize(memory.momentum.size());
    const cuda::Status status = cuda::InOrder(
        [&] {
          return cuda::CopyToHost(memory.residual.span().first(residual.size()),
                                  std::span(residual), stream_);
        },
        [&] { return cuda::CopyToHost(memory.momentum.span(), std::span(momentum), stream_); });
    if (!status.ok()) return status;
  }
  return stream_.Wait();
}

absl::Status DeviceShardEncoder::Restore(ShardId shard, std::span<const float> residual,
                                         std::span<const float> momentum) {
  ShardMemory& memory = shards_[shard.value];
  memory.owes = !residual.empty();
  return ToStatus(cuda::InOrder(
      [&] { return Reserve(residual.size(), memory.residual); },
      [&] { return memory.momentum.Allocate(momentum.size()); },
      [&] {
        return cuda::CopyToDevice(residual, memory.residual.span().first(residual.size()), stream_);
      },
      [&] { return cuda::CopyToDevice(momentum, memory.momentum.span(), stream_); },
      [&] { return stream_.Wait(); }));
}

}  // namespace thinwire::client::gpu
