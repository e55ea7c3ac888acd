#include "client/gpu/device_shard_encoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/gpu/device_status.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/model/matrix_run.h"
#include "kernels/cuda/ops/accumulate_momentum.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/sparse.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Returns the offset in an aligned buffer at which a payload must begin so that its codes begin at
// a multiple of 16 bytes.
size_t AlignedOffset(const DeviceCodec& codec, size_t count, const MatrixRun& matrix) {
  return (16 - codec.CodesOffset(count, matrix) % 16) % 16;
}

cuda::Status ClearFloats(std::span<float> values, const cuda::Stream& stream) {
  return cuda::Clear(std::as_writable_bytes(values), stream);
}

// Returns a pool of pinned memory for payloads that the GPU writes.
BufferPool PinnedPool() {
  return BufferPool([](size_t size) -> BufferPool::Memory {
    auto pinned = std::make_shared<cuda::PinnedBuffer<std::byte>>();
    if (!pinned->Allocate(size).ok()) return nullptr;
    std::byte* const bytes = pinned->data();
    return {bytes, [pinned = std::move(pinned)](std::byte*) {}};
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceShardEncoder>> DeviceShardEncoder::Make(
    const Partition& partition, const ClientOptions& options) {
  std::unique_ptr<DeviceShardEncoder> encoder(new DeviceShardEncoder(partition, options));
  RETURN_IF_ERROR(ToStatus(encoder->Open()));
  return encoder;
}

DeviceShardEncoder::DeviceShardEncoder(const Partition& partition, const ClientOptions& options)
    : correction_(options.correction),
      keep_error_(options.error_feedback),
      residual_decay_(static_cast<float>(options.residual_decay)),
      pool_(PinnedPool()),
      on_host_(partition.shard_count()) {
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    shards_.push_back(
        {.count = partition.value_count(shard), .codec = {.matrix = partition.MatrixRunOf(shard)}});
  }
}

cuda::Status DeviceShardEncoder::Open() {
  for (Slot& slot : slots_) {
    RETURN_IF_CUDA_ERROR(slot.done.Open());
    RETURN_IF_CUDA_ERROR(slot.size.Allocate(1));
    RETURN_IF_CUDA_ERROR(slot.size_on_host.Allocate(1));
  }
  RETURN_IF_CUDA_ERROR(gradients_.Open());
  RETURN_IF_CUDA_ERROR(stream_.Open());
  RETURN_IF_CUDA_ERROR(thresholds_.Allocate(shards_.size()));
  for (size_t s = 0; s < shards_.size(); ++s) shards_[s].codec.threshold = &thresholds_.data()[s];
  return cuda::Clear(std::as_writable_bytes(thresholds_.span()), stream_);
}

absl::StatusOr<const DeviceCodec*> DeviceShardEncoder::CodecOf(const CodecSpec& spec) {
  for (const auto& [made, codec] : codecs_) {
    if (made == spec) return codec.get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const DeviceCodec> codec, DeviceCodec::Make(spec));
  if (codecs_.size() == kCodecs) codecs_.pop_front();
  codecs_.emplace_back(spec, std::move(codec));
  return codecs_.back().second.get();
}

absl::Status DeviceShardEncoder::Begin(const Work& work) {
  ASSIGN_OR_RETURN(const DeviceCodec* const codec, CodecOf(work.spec));
  Slot& slot = slots_[(oldest_ + begun_count_) % kSlots];
  ASSIGN_OR_RETURN(const auto values,
                   gradients_.Prepare(work.gradient, work.factor, slot.gradient));
  ++begun_count_;
  slot.shard = work.shard;
  slot.finite = values.has_value();
  if (!slot.finite) return absl::OkStatus();
  slot.owner = work.gradient.owner;
  const size_t max_bytes =
      codec->MaxPayloadBytes(values->size(), shards_[work.shard.value].codec.matrix);
  slot.out = pool_.Take(max_bytes);
  if (slot.out == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("CUDA: allocate pinned memory: out of memory (", max_bytes, " bytes)"));
  }
  return ToStatus(Encode(*codec, work, *values, slot));
}

cuda::Status DeviceShardEncoder::Correct(ShardMemory& memory, std::span<const float>& values) {
  if (!correction_.enabled) return {};
  if (memory.momentum.size() == 0) {
    RETURN_IF_CUDA_ERROR(memory.momentum.Allocate(memory.count));
    RETURN_IF_CUDA_ERROR(ClearFloats(memory.momentum.span(), stream_));
  }
  const std::span<const float> gradient = values;
  if (!correction_.nesterov) {
    values = memory.momentum.span();
    return cuda::AccumulateMomentum(correction_.momentum, gradient, memory.momentum.span(),
                                    stream_);
  }
  RETURN_IF_CUDA_ERROR(direction_.Reserve(memory.count));
  const std::span<float> direction = direction_.span().first(memory.count);
  values = direction;
  return cuda::AccumulateNesterov(correction_.momentum, gradient, memory.momentum.span(), direction,
                                  stream_);
}

cuda::Status DeviceShardEncoder::PrepareResidual(ShardMemory& memory) {
  if (memory.has_residual) return {};
  RETURN_IF_CUDA_ERROR(memory.residual.Reserve(memory.count));
  memory.has_residual = true;
  return ClearFloats(memory.residual.span(), stream_);
}

// Does the same on the GPU as ErrorFeedback::Encode and MomentumCorrection do on the host. Like
// there, a codec that needs memory also feeds back without error feedback; the result is dropped.
cuda::Status DeviceShardEncoder::Encode(const DeviceCodec& codec, const Work& work,
                                        std::span<const float> values, Slot& slot) {
  ShardMemory& memory = shards_[work.shard.value];
  const bool leaves_residual = !codec.twin().lossless() && keep_error_;
  const bool feeds_back = memory.has_residual || leaves_residual || codec.twin().needs_memory();
  const size_t offset = AlignedOffset(codec, memory.count, memory.codec.matrix);
  RETURN_IF_CUDA_ERROR(slot.payload.Reserve(offset + slot.out->size));
  RETURN_IF_CUDA_ERROR(workspace_.Reserve(codec.WorkspaceBytes(memory.count, memory.codec.matrix)));
  if (memory.has_residual && residual_decay_ != 1) {
    const auto residual = memory.residual.span().first(memory.count);
    RETURN_IF_CUDA_ERROR(cuda::Scale(residual_decay_, residual, stream_));
  }
  RETURN_IF_CUDA_ERROR(Correct(memory, values));
  std::vector<float> residual_before, values_before;
  if (work.error != nullptr) {
    residual_before.resize(memory.has_residual ? memory.count : 0);
    values_before.resize(memory.count);
    RETURN_IF_CUDA_ERROR(cuda::CopyToHost(memory.residual.span().first(residual_before.size()),
                                          std::span(residual_before), stream_));
    RETURN_IF_CUDA_ERROR(cuda::CopyToHost(values, std::span(values_before), stream_));
  }
  std::span<float> residual;
  if (feeds_back) {
    RETURN_IF_CUDA_ERROR(PrepareResidual(memory));
    residual = memory.residual.span().first(memory.count);
  }
  memory.has_residual = leaves_residual;
  const auto payload = slot.payload.span().subspan(offset, slot.out->size);
  RETURN_IF_CUDA_ERROR(codec.Encode(values, residual, work.keys, memory.codec, workspace_.span(),
                                    payload, slot.size.data(), stream_));
  RETURN_IF_CUDA_ERROR(cuda::CopyBytesToHost(payload, slot.out->span(), stream_));
  RETURN_IF_CUDA_ERROR(cuda::CopyToHost(slot.size.span(), slot.size_on_host.span(), stream_));
  RETURN_IF_CUDA_ERROR(slot.done.Record(stream_));
  if (work.error == nullptr) return {};
  RETURN_IF_CUDA_ERROR(slot.done.Wait());
  work.error->Add(residual_before, values_before, EncodedPayload(PayloadOf(slot), memory.count));
  return {};
}

ByteChain DeviceShardEncoder::PayloadOf(Slot& slot) {
  return ByteChain(slot.out->span().first(slot.size_on_host.data()[0]), slot.out);
}

absl::StatusOr<std::optional<ByteChain>> DeviceShardEncoder::Finish() {
  Slot& slot = slots_[oldest_];
  oldest_ = (oldest_ + 1) % kSlots;
  --begun_count_;
  if (!slot.finite) return std::nullopt;
  RETURN_IF_ERROR(ToStatus(slot.done.Wait()));
  slot.owner.reset();
  ByteChain payload = PayloadOf(slot);
  slot.out.reset();
  RETURN_IF_ERROR(ToStatus(MaskMomentum(payload, slot)));
  return payload;
}

cuda::Status DeviceShardEncoder::MaskMomentum(const ByteChain& bytes, Slot& slot) {
  if (!correction_.enabled || !correction_.factor_masking) return {};
  ShardMemory& memory = shards_[slot.shard.value];
  const CheckedPayload payload = EncodedPayload(bytes, memory.count);
  if (!PayloadIsSparse(payload)) return {};
  slot.sent.clear();
  ForEachPayloadEntry(payload, [&](std::span<const uint32_t> indices, std::span<const float>) {
    slot.sent.insert(slot.sent.end(), indices.begin(), indices.end());
  });
  const size_t count = slot.sent.size();
  RETURN_IF_CUDA_ERROR(indices_.Reserve(count));
  RETURN_IF_CUDA_ERROR(kept_.Reserve(count));
  const auto indices = indices_.span().first(count);
  const auto zeros = kept_.span().first(count);
  RETURN_IF_CUDA_ERROR(cuda::CopyToDevice(slot.sent, indices, stream_));
  RETURN_IF_CUDA_ERROR(ClearFloats(zeros, stream_));
  return cuda::Scatter(indices, zeros, 1.0f, memory.momentum.span(), stream_);
}

absl::Status DeviceShardEncoder::GiveBack(ShardId shard, const CheckedPayload& payload,
                                          std::span<const uint32_t> selected) {
  return ToStatus(AddBack(shards_[shard.value], payload, selected));
}

// Adds the whole payload to the residual, then restores the residual's previous values at the
// selected indices.
cuda::Status DeviceShardEncoder::AddBack(ShardMemory& memory, const CheckedPayload& payload,
                                         std::span<const uint32_t> selected) {
  const size_t count = selected.size();
  RETURN_IF_CUDA_ERROR(PrepareResidual(memory));
  RETURN_IF_CUDA_ERROR(indices_.Reserve(count));
  RETURN_IF_CUDA_ERROR(kept_.Reserve(count));
  const auto indices = indices_.span().first(count);
  const auto kept = kept_.span().first(count);
  const auto residual = memory.residual.span();
  RETURN_IF_CUDA_ERROR(cuda::CopyToDevice(selected, indices, stream_));
  RETURN_IF_CUDA_ERROR(cuda::Gather(residual, indices, kept, stream_));
  RETURN_IF_CUDA_ERROR(given_back_.DecodeAdd(payload, residual, stream_));
  RETURN_IF_CUDA_ERROR(cuda::Scatter(indices, kept, 1.0f, residual, stream_));
  return stream_.Wait();
}

absl::StatusOr<double> DeviceShardEncoder::SumOfSquares(std::span<const float> gradient) {
  return gradients_.SumOfSquares(gradient);
}

absl::StatusOr<std::vector<ShardFeedback>> DeviceShardEncoder::feedback() {
  RETURN_IF_ERROR(ToStatus(CopyFeedback()));
  std::vector<ShardFeedback> feedback;
  for (const auto& [residual, momentum] : on_host_) feedback.push_back({residual, momentum});
  return feedback;
}

cuda::Status DeviceShardEncoder::CopyFeedback() {
  for (size_t s = 0; s < shards_.size(); ++s) {
    const ShardMemory& memory = shards_[s];
    auto& [residual, momentum] = on_host_[s];
    residual.resize(memory.has_residual ? memory.count : 0);
    momentum.resize(memory.momentum.size());
    RETURN_IF_CUDA_ERROR(cuda::CopyToHost(memory.residual.span().first(residual.size()),
                                          std::span(residual), stream_));
    RETURN_IF_CUDA_ERROR(cuda::CopyToHost(memory.momentum.span(), std::span(momentum), stream_));
  }
  return stream_.Wait();
}

absl::Status DeviceShardEncoder::Restore(ShardId shard, std::span<const float> residual,
                                         std::span<const float> momentum) {
  return ToStatus(CopyToMemory(residual, momentum, shards_[shard.value]));
}

cuda::Status DeviceShardEncoder::CopyToMemory(std::span<const float> residual,
                                              std::span<const float> momentum,
                                              ShardMemory& memory) {
  memory.has_residual = !residual.empty();
  RETURN_IF_CUDA_ERROR(memory.codec.warm_start.Allocate(0));
  RETURN_IF_CUDA_ERROR(memory.residual.Reserve(residual.size()));
  RETURN_IF_CUDA_ERROR(memory.momentum.Allocate(momentum.size()));
  RETURN_IF_CUDA_ERROR(
      cuda::CopyToDevice(residual, memory.residual.span().first(residual.size()), stream_));
  RETURN_IF_CUDA_ERROR(cuda::CopyToDevice(momentum, memory.momentum.span(), stream_));
  return stream_.Wait();
}

}  // namespace thinwire::client::gpu
