// The low-rank family: payloads that contain a matrix as the product of two small matrices, P with
// `rank` columns and Q with `rank` columns. The shard's values are a run of the matrix P Q^T
// (matrix_run.h).
//
//   powersgd   id | rank (1) | columns (4) | first column (4) | dense payload of P | of Q
//
// P has a row for each row of the matrix, Q a row for each of its columns. Each of them is stored
// column by column. The value in row i and column j of the matrix is the sum of P(i, k) Q(j, k), in
// floats and in the order of k. Together, P and Q have at most as many values as the shard, so a
// payload never makes a decoder allocate more than the shard takes.
#ifndef THINWIRE_COMMON_CODEC_LOW_RANK_LOW_RANK_PAYLOAD_H_
#define THINWIRE_COMMON_CODEC_LOW_RANK_LOW_RANK_PAYLOAD_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/codec/family/value_format.h"
#include "common/memory/byte_chain.h"
#include "common/model/matrix_run.h"

namespace thinwire {

inline constexpr size_t kMostLowRank = 32;

// The head of a payload and the number of the shard's values. A value type.
struct LowRankHead {
  static constexpr size_t kBytes = 10;

  size_t rank = 1;
  MatrixRun matrix;
  size_t count = 0;  // of the shard's values; not part of the payload

  size_t rows() const { return matrix.RowCount(count); }
  size_t p_count() const { return rows() * rank; }
  size_t q_count() const { return matrix.columns * rank; }
  // Writes the head to OUT, which has kBytes bytes.
  void Put(std::byte* out) const;
};

// P and Q as floats. A value type.
struct LowRankFactors {
  LowRankHead head;
  std::vector<float> p;  // p_count() values: P(i, k) is p[k * rows + i]
  std::vector<float> q;  // q_count() values: Q(j, k) is q[k * columns + j]

  // Sets OUT to the out.size() values of the shard from index FIRST on.
  void Decode(size_t first, std::span<float> out) const;
};

// The head of a checked payload, and the positions of P and Q. Immutable. Thread-safe.
class LowRankLayout {
 public:
  // Checks a payload of a shard of COUNT values. No number in the payload determines the size of an
  // allocation. Errors: InvalidArgument if the payload is malformed.
  static absl::StatusOr<LowRankLayout> Check(const ByteChain& payload, size_t count,
                                             FindValueFormat find);

  const LowRankHead& head() const { return head_; }

  // In the functions below, PAYLOAD is the payload that was passed to Check.

  // Returns whether all values are finite and have magnitudes up to LIMIT. Tests a bound of the
  // values in each row of the matrix, and may return false although the values are smaller.
  bool IsWithin(const ByteChain& payload, float limit) const;
  // Decodes P and Q.
  LowRankFactors Factors(const ByteChain& payload) const;

 private:
  // The dense payload of P or Q within a payload.
  struct Factor {
    const ValueFormat* format = nullptr;
    size_t offset = 0;  // of the body, which follows the codec id
    size_t count = 0;   // of values
    size_t end = 0;
  };

  // Checks the dense payload of COUNT values that begins at byte BEGIN of PAYLOAD.
  static absl::StatusOr<Factor> CheckFactor(const ByteChain& payload, size_t begin, size_t count,
                                            FindValueFormat find);

  LowRankHead head_;
  Factor p_;
  Factor q_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_LOW_RANK_LOW_RANK_PAYLOAD_H_
