#include "client/gpu/device_decode.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/ops/sparse.h"
#include "kernels/cuda/runtime/in_order.h"
#include "kernels/cuda/runtime/memory.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

namespace {

std::optional<DenseDecoder> Dense(const CheckedPayload& payload, float scale) {
  if (PayloadIsSparse(payload)) return std::nullopt;
  return DenseDecoder(payload, scale);
}

}  // namespace

DeviceDecoder::DeviceDecoder(const CheckedPayload& payload, float scale)
    : payload_(payload),
      scale_(scale),
      dense_(Dense(payload, scale)),
      sent_count_(dense_.has_value() ? 0 : payload.entries().head().entry_count) {}

size_t DeviceDecoder::staged_bytes() const {
  if (dense_.has_value()) return dense_->staged_bytes();
  return sent_count_ * (sizeof(uint32_t) + sizeof(float));
}

size_t DeviceDecoder::workspace_bytes() const {
  return dense_.has_value() ? dense_->workspace_bytes() : 0;
}

void DeviceDecoder::Stage(std::span<std::byte> staged) const {
  if (dense_.has_value()) return dense_->Stage(staged);
  auto* indices = reinterpret_cast<uint32_t*>(staged.data());
  auto* values = reinterpret_cast<float*>(indices + sent_count_);
  ForEachPayloadEntry(payload_, [&](auto some_indices, auto some_values) {
    indices = std::ranges::copy(some_indices, indices).out;
    values = std::ranges::copy(some_values, values).out;
  });
}

DeviceDecoder::Entries DeviceDecoder::EntriesOf(std::span<const std::byte> staged) const {
  const auto* indices = reinterpret_cast<const uint32_t*>(staged.data());
  const auto* values = reinterpret_cast<const float*>(indices + sent_count_);
  return {{indices, sent_count_}, {values, sent_count_}};
}

Status DeviceDecoder::Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                             std::span<float> out, const cuda::Stream& stream) const {
  if (dense_.has_value()) return dense_->Decode(staged, workspace, out, /*adds=*/false, stream);
  const Entries entries = EntriesOf(staged);
  return cuda::InOrder(
      [&] { return Clear(std::as_writable_bytes(out), stream); },
      [&] { return Scatter(entries.indices, entries.values, scale_, out, stream); });
}

Status DeviceDecoder::DecodeAdd(std::span<const std::byte> staged, std::span<std::byte> workspace,
                                std::span<float> sum, const cuda::Stream& stream) const {
  if (dense_.has_value()) return dense_->Decode(staged, workspace, sum, /*adds=*/true, stream);
  const Entries entries = EntriesOf(staged);
  return ScatterAdd(entries.indices, entries.values, scale_, sum, stream);
}

}  // namespace thinwire::client::gpu
