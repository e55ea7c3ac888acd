#include "common/codec/spec.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/codec/table.h"

namespace thinwire {

std::vector<SettingProblem> CodecSpec::Validate() const {
  std::vector<SettingProblem> problems;
  const auto want = [&](bool valid, const char* setting, const char* expected, const auto& got) {
    if (!valid) problems.push_back({setting, expected, absl::StrCat(got)});
  };
  want(density > 0 && density <= 1, "density", "a number above 0 and at most 1", density);
  want(least_sent >= 1, "least_sent", "1 or more", least_sent);
  want(IsDense(values), "values", "a dense codec", std::string(CodecName(values)));
  using Float = std::numeric_limits<float>;
  want(twobit_threshold >= Float::min() && twobit_threshold <= Float::max(), "twobit_threshold",
       "a positive number that a float can hold", twobit_threshold);
  want(qsgd_levels >= 1 && qsgd_levels <= 127, "qsgd_levels", "1 to 127", qsgd_levels);
  want(onebit_group % 8 == 0, "onebit_group", "a multiple of 8", onebit_group);
  return problems;
}

absl::Status ToStatus(std::string_view place, const std::vector<SettingProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  const auto append = [&](std::string* out, const SettingProblem& problem) {
    absl::StrAppend(out, std::string(place), ": ", problem.setting, ": invalid value (expected ",
                    problem.expected, ", got ", problem.got, ")");
  };
  return absl::InvalidArgumentError(absl::StrJoin(problems, "; ", append));
}

}  // namespace thinwire
