#include "common/codec/spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/codec/low_rank/low_rank_payload.h"
#include "common/codec/table.h"
#include "common/model/partition.h"

namespace thinwire {

Problems CodecSpec::Validate() const {
  Problems problems;
  problems.RequireDensity("density", density);
  if (!IsDense(values)) {
    problems.Add("topk_values", absl::StrCat("not dense (expected a dense codec, got ",
                                             std::string(CodecName(values)), ")"));
  }
  problems.RequireInteger("topk_least", least_sent, 1, kLargestShardSize);
  problems.RequirePositiveFloat("twobit_threshold", twobit_threshold);
  problems.RequireInteger("qsgd_levels", qsgd_levels, 1, 127);
  problems.Require(onebit_group % 8 == 0, "onebit_group", "a multiple of 8", onebit_group);
  problems.RequireInteger("powersgd_rank", powersgd_rank, 1, kMostLowRank);
  return problems;
}

}  // namespace thinwire
