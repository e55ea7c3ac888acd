// CheckSharedTensors refuses a model with a tensor whose trust ratio needs norms over several
// shards (Partition::SharesTensor) in a job whose servers cannot add such norms
// (docs/optimizers.md).
#ifndef THINWIRE_COMMON_SPEC_SHARED_TENSORS_H_
#define THINWIRE_COMMON_SPEC_SHARED_TENSORS_H_

#include "absl/status/status.h"
#include "common/model/partition.h"
#include "common/spec/rule.h"

namespace thinwire {

// The settings of a job with which shards may be unable to share a tensor.
struct SharedTensorSettings {
  Rule rule;
  double clip_norm = 0;   // JobSpec::clip_norm
  bool logs = false;      // durability: log
  bool adaptive = false;  // push: adaptive
};

// Errors: InvalidArgument with the name of a shared tensor of PARTITION and the setting that does
// not allow it.
absl::Status CheckSharedTensors(const Partition& partition, const SharedTensorSettings& settings);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_SHARED_TENSORS_H_
