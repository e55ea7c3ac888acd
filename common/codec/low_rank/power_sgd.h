// The powersgd codec: sends an approximation P Q^T of rank r of a shard's matrix M (Vogels,
// Karimireddy and Jaggi 2019, algorithm 1). One step of the power iteration per call improves the Q
// of the last call, so the approximation follows a matrix that changes slowly:
//
//   P = M Q;   orthonormalize the columns of P;   Q = M^T P
//
// M is the residual plus the gradient. The first Q is random. In contrast to the paper, every
// worker sends a P and a Q of its own, and the server adds the products. A shard whose position in
// its matrix is unknown is viewed as a nearly square matrix. A shard is sent in its value codec if
// P and Q take more than half of the bytes of that dense payload.
#ifndef THINWIRE_COMMON_CODEC_LOW_RANK_POWER_SGD_H_
#define THINWIRE_COMMON_CODEC_LOW_RANK_POWER_SGD_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "common/codec/family/encoder.h"
#include "common/codec/family/value_format.h"
#include "common/codec/low_rank/low_rank_payload.h"
#include "common/model/matrix_run.h"

namespace thinwire {

// Returns the head of the payload with which a powersgd codec of rank RANK sends COUNT values, or
// nullopt if it sends them in its value codec. MATRIX is the position of the values; a `columns` of
// 0 means that it is unknown. DENSE_BYTES returns the length of the longest payload of a number of
// values in the value codec.
std::optional<LowRankHead> PowerSgdHead(size_t rank, const MatrixRun& matrix, size_t count,
                                        absl::FunctionRef<size_t(size_t count)> dense_bytes);

// Returns the largest magnitude in the Q of a codec of rank RANK. The values of P are at most 1, so
// the values of the product stay finite.
inline float LargestInQ(size_t rank) {
  return std::numeric_limits<float>::max() / (2 * static_cast<float>(rank));
}

// Returns a powersgd codec of rank RANK that encodes P and Q with VALUES. FORMAT decodes payloads
// of VALUES and must outlive the codec. REQUIRES: 1 <= rank <= kMostLowRank; VALUES is dense.
std::unique_ptr<const Codec> MakePowerSgdCodec(size_t rank, std::unique_ptr<const Codec> values,
                                               const ValueFormat& format);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_LOW_RANK_POWER_SGD_H_
