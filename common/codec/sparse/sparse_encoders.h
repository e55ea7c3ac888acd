// The encoders of the sparse family (sparse_payload.h).
//
//   topk      sends the k values of largest magnitude; among equal magnitudes the lower index wins
//             (Aji and Heafield 2017)
//   randomk   sends k values whose indices follow from RandomKeys::shared, so all workers of a step
//             send the same indices (Stich et al. 2018)
//
// k = SparseEntryCount(density, n). A topk payload that would not be smaller than the dense payload
// of its value codec is sent as that dense payload.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_
#define THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_

#include <memory>

#include "common/codec/family/encoder.h"

namespace thinwire {

// Both functions REQUIRE that 0 < density <= 1 and that VALUES is a dense codec.

// Sends at least LEAST values of each shard, so that a small layer sends more than its part.
// REQUIRES: least >= 1.
std::unique_ptr<const Codec> MakeTopKCodec(double density, size_t least, IndexCoder coder,
                                           std::unique_ptr<const Codec> values);
// With UNBIASED, Encode multiplies the values by n/k, so that their expectation is right without
// error feedback.
std::unique_ptr<const Codec> MakeRandomKCodec(double density, bool unbiased,
                                              std::unique_ptr<const Codec> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_SPARSE_ENCODERS_H_
