// The sparse codecs: a part of the values, in a dense codec, and where they are (sparse_head.h).
//
//   topk      the k of largest magnitude, of equal ones the lower index (Aji and Heafield 2017)
//   randomk   k that the turn's shared draw stands for (drawn_indices.h): every worker of a step
//             sends the same ones (Stich et al. 2018)
//
// k = round(density * n), at least 1; in topk at least LEAST, so that a small layer may send more
// than its part. Where topk would take no less than the dense payload of its value
// codec, it sends that.
#ifndef THINWIRE_COMMON_CODEC_TOP_K_H_
#define THINWIRE_COMMON_CODEC_TOP_K_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"

namespace thinwire {

// For both: REQUIRES: VALUES is a dense codec. Errors: InvalidArgument for a density outside (0, 1]
// or a LEAST of 0.

absl::StatusOr<std::unique_ptr<const Codec>> MakeTopKCodec(double density, size_t least,
                                                           IndexCoder coder,
                                                           std::unique_ptr<const Codec> values);
// With UNBIASED it sends n/k times the values, whose mean over the draws is right then.
absl::StatusOr<std::unique_ptr<const Codec>> MakeRandomKCodec(double density, bool unbiased,
                                                              std::unique_ptr<const Codec> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TOP_K_H_
