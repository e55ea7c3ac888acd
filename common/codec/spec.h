// CodecSpec: the id and the settings of a codec. MakeCodec makes a codec from them. A value type.
#ifndef THINWIRE_COMMON_CODEC_SPEC_H_
#define THINWIRE_COMMON_CODEC_SPEC_H_

#include <cstdint>

#include "common/codec/family/codec_id.h"
#include "common/text/problems.h"

namespace thinwire {

struct CodecSpec {
  CodecId id = CodecId::kFp32;
  // topk, randomk, dct_topk: the part of the values, or coefficients, that is sent, in (0, 1]
  double density = 0.01;
  uint32_t least_sent = 1;  // topk: values sent per shard at any density, 1 or more
  // topk, randomk, dct_topk: the codec of the sent values; powersgd: the codec of P and Q. A dense
  // codec.
  CodecId values = CodecId::kFp32;
  IndexCoder indices = IndexCoder::kEliasFano;  // topk, dct_topk: of the indices
  // randomk: if true, the encoder, which sends k of a shard's n values, multiplies the sent values
  // by n/k. The decoded gradient is then unbiased without error feedback.
  bool unbiased = false;
  double twobit_threshold = 0.5;  // twobit: the threshold, a positive normal float
  uint32_t qsgd_levels = 7;       // qsgd: levels from 0 to the largest magnitude, 1 to 127
  // onebit, onebit_sign: the number of values that share scales, a multiple of 8; 0: all values of
  // a shard share them.
  uint32_t onebit_group = 0;
  uint32_t powersgd_rank = 2;  // powersgd: the number of columns of P and of Q, 1 to 32

  // Checks all settings, also settings that codec `id` does not read. The problems name these
  // fields of the job file: density, topk_values, topk_least, twobit_threshold, qsgd_levels,
  // onebit_group, powersgd_rank.
  Problems Validate() const;

  bool operator==(const CodecSpec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPEC_H_
