// PlaceTensors sets the parameter group of each tensor, whether the group's optimizer needs whole
// tensors, and whether tensors may share shards. Every process that makes a partition calls it with
// the same groups.
#ifndef THINWIRE_COMMON_SPEC_PLACE_TENSORS_H_
#define THINWIRE_COMMON_SPEC_PLACE_TENSORS_H_

#include <span>

#include "absl/status/status.h"
#include "common/model/partition.h"
#include "common/spec/group_spec.h"

namespace thinwire {

// Sets `group`, `whole` and `apart` of every tensor in TENSORS. GROUPS begins with group 0; an empty
// list leaves all tensors in group 0. Errors: InvalidArgument if a group other than group 0 contains
// no tensor.
absl::Status PlaceTensors(std::span<const GroupSpec> groups, std::span<TensorShape> tensors);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_PLACE_TENSORS_H_
