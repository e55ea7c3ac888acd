// The encoders of the sparse family (sparse_payload.h).
//
//   topk      sends the k values of largest magnitude; among equal magnitudes, the values with the
//             lower indices (Aji and Heafield 2017)
//   randomk   sends k values at random indices. RandomKeys::shared determines the indices, so all
//             workers send the same indices in a step (Stich et al. 2018)
//
// k = SparseEntryCount(density, n). A topk payload that would not be smaller than the dense payload
// of its value codec is sent as that dense payload.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_
#define THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_

#include <memory>

#include "common/codec/family/encoder.h"

namespace thinwire {

// Both functions REQUIRE: 0 < density <= 1; VALUES, the codec of the sent values, is dense.

// Returns a topk codec that sends at least LEAST values of each shard at any density. REQUIRES:
// least >= 1.
std::unique_ptr<const Codec> MakeTopKCodec(double density, size_t least, IndexCoder coder,
                                           std::unique_ptr<const Codec> values);
// Returns a randomk codec. If UNBIASED is true, Encode multiplies the sent values by n/k, which
// makes the decoded gradient unbiased without error feedback.
std::unique_ptr<const Codec> MakeRandomKCodec(double density, bool unbiased,
                                              std::unique_ptr<const Codec> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_
