#include "proto/compression_check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/table.h"
#include "common/partition.h"
#include "proto/pull_choice.h"

namespace thinwire {
namespace {

// Whole parameters, or what changed of them.
void CheckPull(const std::string& pull, Findings& findings) {
  if (pull == "delta") return;
  const PullChoice choice = ParsePull(pull);
  findings.WantName("pull", choice.codec, choice.deltas ? CodecNames() : ParameterCodecNames());
}

// A codec, or a rule by which to choose one.
void CheckPush(const Compression& c, Findings& findings) {
  std::vector<std::string_view> names(CodecNames().begin(), CodecNames().end());
  names.insert(names.end(), std::begin(kPushRuleNames), std::end(kPushRuleNames));
  findings.WantName("push", c.push(), names);
  for (int i = 0; i < c.auto_codecs_size(); ++i) {
    findings.WantName(absl::StrCat("auto_codecs[", i, "]"), c.auto_codecs(i), CodecNames());
  }
  if (!findings.whole()) return;
  const bool chosen = std::ranges::count(kPushRuleNames, c.push()) > 0;
  findings.Want(chosen || c.auto_codecs_size() == 0, "auto_codecs",
                "nothing, for it is of push auto and fastest only",
                absl::StrCat("it with ", c.push()));
  const auto unset = [&](const std::string& field, double part) {
    findings.Want(!chosen || part == 0, field, absl::StrCat("0 with push ", c.push()), part);
  };
  unset("density_warmup", c.density_warmup());
  unset("first_push_part", c.first_push_part());
}

}  // namespace

void CheckCompression(const Compression& c, Findings& findings) {
  CheckPush(c, findings);
  CheckPull(c.pull(), findings);
  findings.WantDensity("density", c.density());
  findings.WantAtLeast(1, "topk_least", c.topk_least(), kLargestShardSize);
  findings.WantName("topk_values", c.topk_values(), DenseCodecNames());
  findings.WantAtLeast(0, "shard_size", c.shard_size(), kLargestShardSize);
  findings.WantName("topk_indices", c.topk_indices(), kIndexCoderNames);
  findings.WantPart("density_warmup", c.density_warmup());
  findings.WantDensity("warmup_density", c.warmup_density());
  findings.Want(c.correction_momentum() >= 0 && c.correction_momentum() < 1, "correction_momentum",
                "a number from 0 to below 1", c.correction_momentum());
  findings.Want(c.gradient_clip() >= 0 && c.gradient_clip() <= std::numeric_limits<float>::max(),
                "gradient_clip", "a number of 0 or more that a float holds", c.gradient_clip());
  findings.WantName("first_push", c.first_push(), CodecNames());
  findings.WantPart("first_push_part", c.first_push_part());
  findings.WantDensity("pull_density", c.pull_density());
  using Float = std::numeric_limits<float>;
  findings.Want(c.twobit_threshold() >= Float::min() && c.twobit_threshold() <= Float::max(),
                "twobit_threshold", "a number above 0 that a float holds", c.twobit_threshold());
  findings.WantAtLeast(1, "qsgd_levels", c.qsgd_levels(), 127);
  findings.Want(c.onebit_group() % 8 == 0, "onebit_group", "a multiple of 8", c.onebit_group());
  findings.WantName("pull_topk_values", c.pull_topk_values(), DenseCodecNames());
  if (!findings.whole()) return;
  // What is corrected is the momentum of values that wait in the residual.
  findings.Want(!c.momentum_correction() || c.error_feedback(), "error_feedback",
                "true, for momentum_correction needs it", "false");
}

}  // namespace thinwire
