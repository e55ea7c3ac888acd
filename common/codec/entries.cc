#include "common/codec/entries.h"

#include <memory>
#include <vector>

#include "common/codec/dense.h"
#include "common/codec/index_code.h"
#include "common/codec/sparse_head.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

constexpr IndexCoder kCoder = IndexCoder::kEliasFano;

SparseHead Head(size_t entry_count) { return {.sent_count = entry_count, .coder = kCoder}; }

size_t ValueBytes(size_t entry_count) { return 1 + DenseBytes(CodecId::kFp32, entry_count); }

}  // namespace

ByteChain EncodeEntries(std::span<const float> values, std::span<const uint32_t> indices) {
  const size_t size = SparseHeadBytes(Head(indices.size())) + ValueBytes(indices.size()) +
                      MaxIndexBytes(kCoder, indices.size(), values.size());
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  PutSparseHead(Head(indices.size()), bytes.get());
  std::byte* const entry_bytes = bytes.get() + SparseHeadBytes(Head(indices.size()));
  std::vector<float> entries(indices.size());
  kernels::Gather(values, indices, entries);
  entry_bytes[0] = static_cast<std::byte>(CodecId::kFp32);
  EncodeDense(CodecId::kFp32, entries, entry_bytes + 1);
  EncodeIndices(kCoder, indices, values.size(), entry_bytes + ValueBytes(indices.size()));
  return ByteChain({bytes.get(), size}, bytes);
}

}  // namespace thinwire
