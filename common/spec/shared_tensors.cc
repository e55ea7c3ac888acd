#include "common/spec/shared_tensors.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/text/quoted.h"

namespace thinwire {

absl::Status CheckSharedTensors(const Partition& partition, const SharedTensorSettings& settings) {
  const std::optional<uint32_t> tensor = partition.SharedTensor();
  if (!tensor.has_value()) return absl::OkStatus();
  std::string refused;
  if (settings.rule.fold != Fold::kRound) {
    // Without rounds, the shards of a tensor have gradients of different steps.
    refused = absl::StrCat("mode: sync or backup (got mode: ", std::string(settings.rule.mode()));
  } else if (settings.logs) {
    // A server alone cannot repeat the sums of all servers.
    refused = "durability: none or checkpoint (got durability: log";
  } else if (settings.clip_norm > 0) {
    // The norms of an update follow from the clipped gradient: a second sum after the first one.
    refused = absl::StrCat("clip_norm: 0 (got clip_norm: ", settings.clip_norm);
  } else if (settings.adaptive) {
    refused = "a push other than adaptive (got push: adaptive";
  } else {
    return absl::OkStatus();
  }
  const TensorShape& shape = partition.tensors()[*tensor];
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Quoted(shape.name), ": has ", shape.value_count(),
                   " values; with optimizer lars or lamb, more than ", kLargestShardSize,
                   " are only valid with ", refused, ")"));
}

}  // namespace thinwire
