// The head of a sparse payload, and where its parts lie.
//
//   topk      6  | varint(2 k + coder)   | dense payload of the k values | indices (index_code.h)
//   randomk   11 | draw (8) | varint(k)  | dense payload of the k values
//
// A varint has 7 bits in a byte, lowest first, a set top bit where another byte follows, and no
// byte more than it needs. A value type.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_HEAD_H_
#define THINWIRE_COMMON_CODEC_SPARSE_HEAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/codec_names.h"

namespace thinwire {

struct SparseHead {
  CodecId id = CodecId::kTopK;
  size_t sent_count = 0;                      // k
  IndexCoder coder = IndexCoder::kEliasFano;  // topk
  uint64_t draw = 0;                          // randomk

  bool operator==(const SparseHead&) const = default;
};

// k = round(density * count), at least LEAST and at most COUNT. REQUIRES: least >= 1.
size_t SentCount(double density, size_t count, size_t least = 1);

// The bytes of the head, which is where the values begin.
size_t SparseHeadBytes(const SparseHead& head);
void PutSparseHead(const SparseHead& head, std::byte* out);

// Reads the head of a payload of COUNT values whose first byte says that it is sparse. Errors:
// InvalidArgument if it is not well-formed.
absl::StatusOr<SparseHead> ReadSparseHead(const ByteChain& payload, size_t count);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_HEAD_H_
