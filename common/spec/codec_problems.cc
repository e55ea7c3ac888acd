#include "common/spec/codec_problems.h"

#include "common/partition.h"

namespace thinwire {

Problems CodecProblems(const CodecSpec& spec, const CodecFieldNames& names) {
  Problems problems;
  // The codecs whose settings apply: the codec itself, and a sparse codec's value codec.
  const CodecId dense = IsDense(spec.id) ? spec.id : spec.values;
  if (!IsDense(spec.id)) {
    problems.RequireDensity(names.density, spec.density);
    if (!IsDense(spec.values)) {
      problems.Add(names.values, absl::StrCat("sparse (expected a dense codec, got ",
                                              std::string(CodecName(spec.values)), ")"));
    }
  }
  if (spec.id == CodecId::kTopK) {
    problems.RequireInteger("topk_least", spec.least_sent, 1, kLargestShardSize);
  }
  if (dense == CodecId::kTwoBit) {
    problems.RequirePositiveFloat("twobit_threshold", spec.twobit_threshold);
  }
  if (dense == CodecId::kQsgd) problems.RequireInteger("qsgd_levels", spec.qsgd_levels, 1, 127);
  if (dense == CodecId::kOneBit || dense == CodecId::kOneBitSign) {
    problems.Require(spec.onebit_group % 8 == 0, "onebit_group", "a multiple of 8",
                     spec.onebit_group);
  }
  return problems;
}

}  // namespace thinwire
