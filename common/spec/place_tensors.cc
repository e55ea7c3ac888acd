#include "common/spec/place_tensors.h"

#include <fnmatch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

uint32_t GroupOf(std::span<const GroupSpec> groups, const std::string& name) {
  for (uint32_t g = 1; g < groups.size(); ++g) {
    if (fnmatch(groups[g].match.c_str(), name.c_str(), FNM_NOESCAPE) == 0) return g;
  }
  return 0;
}

}  // namespace

absl::Status PlaceTensors(std::span<const GroupSpec> groups, std::span<TensorShape> tensors) {
  std::vector<size_t> tensor_counts(groups.size());
  for (TensorShape& tensor : tensors) {
    tensor.group = GroupOf(groups, tensor.name);
    if (groups.empty()) continue;
    tensor.apart = groups[tensor.group].apart;
    tensor.whole = Traits(groups[tensor.group].optimizer.kind).reads_norms;
    ++tensor_counts[tensor.group];
  }
  for (size_t g = 1; g < groups.size(); ++g) {
    if (tensor_counts[g] > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter_group[", g - 1,
                     "].match: no tensor (expected a pattern of a tensor that no earlier group "
                     "matches, such as ",
                     tensors.empty() ? "none" : Quoted(tensors.front().name), ", got ",
                     Quoted(groups[g].match), ")"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
