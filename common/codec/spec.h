// CodecSpec: what a codec is made from, its id and its settings. A value type.
#ifndef THINWIRE_COMMON_CODEC_SPEC_H_
#define THINWIRE_COMMON_CODEC_SPEC_H_

#include <cstdint>

#include "common/codec/family/codec_id.h"
#include "common/problems.h"

namespace thinwire {

struct CodecSpec {
  CodecId id = CodecId::kFp32;
  double density = 0.01;            // topk, randomk: the part of the values that is sent, in (0, 1]
  uint32_t least_sent = 1;          // topk: values sent per shard at any density, 1 or more
  CodecId values = CodecId::kFp32;  // topk, randomk: the codec of the sent values, a dense one
  IndexCoder indices = IndexCoder::kEliasFano;  // topk
  // randomk: multiplies the sent values by n/k, so that their expectation is right without error
  // feedback.
  bool unbiased = false;
  double twobit_threshold = 0.5;  // a positive number that a float can hold
  uint32_t qsgd_levels = 7;       // 1 to 127
  // onebit, onebit_sign: the number of values that share scales, a multiple of 8; 0: all values.
  uint32_t onebit_group = 0;

  // Checks all settings, also those that codec `id` does not read. The problems name the fields of
  // a job file: density, topk_values, topk_least, twobit_threshold, qsgd_levels, onebit_group.
  Problems Validate() const;

  bool operator==(const CodecSpec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPEC_H_
