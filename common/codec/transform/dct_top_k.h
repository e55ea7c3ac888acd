// The dct_topk codec: sends the k largest coefficients of the discrete cosine transform of each 64
// values (Peng, Quesnelle and Kingma 2024, DeMo, section 3.2):
//
//   dct_topk   id | head, values and indices of a topk payload (sparse_payload.h)
//
// Index 64 c + j is coefficient j of chunk c (kernels/dct.h). The last count mod 64 values are not
// transformed: their indices are those of values. k = SparseEntryCount(density, n) of the n values
// of a chunk, so every chunk sends something. Among equal magnitudes, the lower indices win. A
// shard is sent in its value codec if the payload would not be smaller, or if one of its values
// exceeds 2^120, so that no coefficient and no sum of an inverse overflows.
#ifndef THINWIRE_COMMON_CODEC_TRANSFORM_DCT_TOP_K_H_
#define THINWIRE_COMMON_CODEC_TRANSFORM_DCT_TOP_K_H_

#include <cstddef>
#include <memory>
#include <span>

#include "common/codec/family/encoder.h"
#include "common/codec/family/value_format.h"

namespace thinwire {

// Returns the number of coefficients that are sent of a shard of COUNT values.
size_t DctEntryCount(double density, size_t count);

// Replaces coefficients by the values that they stand for. COEFFICIENTS begin with a chunk, and end
// with one or with the shard.
void InverseTransform(std::span<float> coefficients);

// Returns a dct_topk codec that encodes coefficients with VALUES. FORMAT decodes payloads of VALUES
// and must outlive the codec. REQUIRES: 0 < density <= 1; VALUES is dense.
std::unique_ptr<const Codec> MakeDctTopKCodec(double density, IndexCoder coder,
                                              std::unique_ptr<const Codec> values,
                                              const ValueFormat& format);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TRANSFORM_DCT_TOP_K_H_
