// Where the parts of a topk payload lie (top_k.h has the format). A value type.
#ifndef THINWIRE_COMMON_CODEC_TOP_K_LAYOUT_H_
#define THINWIRE_COMMON_CODEC_TOP_K_LAYOUT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"

namespace thinwire {

struct TopKLayout {
  CodecId values = CodecId::kFp32;
  size_t sent_count = 0;      // k
  size_t indices_offset = 0;  // from the payload's begin, as the next
  size_t values_offset = 0;
  size_t payload_bytes = 0;

  bool operator==(const TopKLayout&) const = default;
};

// That of SENT_COUNT of COUNT values. REQUIRES: sent_count <= count < 2^32; IsDense(values).
TopKLayout LayOutTopK(CodecId values, size_t sent_count, size_t count);

// Writes the head, up to the indices.
void PutTopKHead(const TopKLayout& layout, std::byte* out);

// Reads the head of a payload whose first byte says topk. Errors: InvalidArgument if it is not
// well-formed or the payload has another length than it says.
absl::StatusOr<TopKLayout> ReadTopKLayout(const ByteChain& payload, size_t count);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TOP_K_LAYOUT_H_
