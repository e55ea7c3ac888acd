#include "common/codec/entries.h"

#include <memory>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/dense.h"
#include "common/codec/elias_fano.h"
#include "common/codec/top_k_layout.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

TopKLayout Layout(size_t entry_count, size_t count) {
  return LayOutTopK(CodecId::kFp32, entry_count, count);
}

}  // namespace

size_t EntriesPayloadBytes(size_t entry_count, size_t count) {
  return Layout(entry_count, count).payload_bytes;
}

ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices) {
  const TopKLayout layout = Layout(indices.size(), values.size());
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(layout.payload_bytes);
  PutTopKHead(layout, bytes.get());
  EncodeEliasFano(indices, values.size(), bytes.get() + layout.indices_offset);
  std::vector<float> entries(indices.size());
  kernels::Gather(values, indices, entries);
  EncodeDense(layout.values, entries, bytes.get() + layout.values_offset);
  return ByteChain({bytes.get(), layout.payload_bytes}, bytes);
}

void ReplaceEntries(const ByteChain& payload, std::span<float> values) {
  if (!PayloadIsSparse(payload)) return DecodePayload(payload, values);
  ForEachSent(payload, values.size(), [&](auto indices, auto entries) {
    kernels::Scatter(indices, entries, 1.0f, values);
  });
}

}  // namespace thinwire
