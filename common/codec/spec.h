// CodecSpec: what a codec is made from, its id and its settings. A value type.
#ifndef THINWIRE_COMMON_CODEC_SPEC_H_
#define THINWIRE_COMMON_CODEC_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/codec/family/codec_id.h"

namespace thinwire {

// A setting with a value that no codec accepts.
struct SettingProblem {
  std::string setting;   // the member's name, such as "qsgd_levels"
  std::string expected;  // "1 to 127"
  std::string got;       // "0"

  bool operator==(const SettingProblem&) const = default;
};

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

  // Returns the problems of all settings, including settings that codec `id` does not use. Empty if
  // the spec is valid.
  std::vector<SettingProblem> Validate() const;

  bool operator==(const CodecSpec&) const = default;
};

// Returns OK if PROBLEMS is empty, else InvalidArgument "PLACE: SETTING: invalid value (expected
// ..., got ...); ...".
absl::Status ToStatus(std::string_view place, const std::vector<SettingProblem>& problems);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPEC_H_
