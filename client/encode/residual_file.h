// The residual file: a worker's residuals, momenta and late examples on disk, so that the next
// process with the same worker number can restore and send them.
//
//   head         8 bytes "TWRESID1" | job length u32 | job | worker u32 | partition hash u64 |
//                step u64 | shard count u32
//   every shard  values u32 | late examples u32 | residual u8 | momentum u8 |
//                values * 4 bytes for each of the two flags that is 1
//   end          CRC-32C of all preceding bytes, u32
//
// Numbers are little-endian. The flags `residual` and `momentum` are 0 if all values of the array
// are 0; the file then omits the array. `step` is the first step whose pushes the residuals do not
// include.
#ifndef THINWIRE_CLIENT_ENCODE_RESIDUAL_FILE_H_
#define THINWIRE_CLIENT_ENCODE_RESIDUAL_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// The worker whose residuals a file contains.
struct ResidualOwner {
  std::string job;
  WorkerId worker;
};

// The saved state of one shard. An array is empty if all its values are zero. FLOATS is a span when
// a file is written and a vector when a file is read.
template <typename Floats>
struct ShardResiduals {
  Floats residual;             // the v of error feedback
  Floats momentum;             // the u of momentum correction
  uint32_t late_examples = 0;  // number of examples of late pushes in the residual
};
using ShardResidualsView = ShardResiduals<std::span<const float>>;

struct SavedResiduals {
  Step step;
  std::vector<ShardResiduals<std::vector<float>>> shards;  // indexed by shard number
};

// Replaces the file at PATH atomically. REQUIRES: SHARDS has one element for every shard of
// PARTITION, and each array is empty or has as many values as the shard. Errors: errors of the file
// system.
absl::Status WriteResiduals(const std::string& path, const ResidualOwner& owner,
                            const Partition& partition, Step step,
                            std::span<const ShardResidualsView> shards);

// Reads the file at PATH. Errors: NotFound if there is no file; FailedPrecondition if the file
// belongs to another owner or partition; DataLoss if the file is damaged.
absl::StatusOr<SavedResiduals> ReadResiduals(const std::string& path, const ResidualOwner& owner,
                                             const Partition& partition);

// The decision whether a joining worker restores the residuals that an earlier process with the
// same worker number saved (docs/decisions/0042).
//
//   file of step f      servers' state                            decision
//   present             predecessor's next <= f <= first step     restore
//   present             predecessor's next > f: pushed later      start without residuals
//   present             first step < f: from another run          start without residuals
//   absent                                                        start without residuals
struct ResidualStart {
  bool restore = false;
  std::string text;  // reason for the log; empty if no earlier process saved residuals
};

// Decides whether to restore the residuals. REPLIES are the servers' replies to Join. PATH is empty
// if residuals are not saved. SAVED is the step in the file; nullopt if there is no file. FIRST is
// the worker's first step.
ResidualStart DecideResidualStart(const std::string& path, std::optional<Step> saved,
                                  std::span<const JoinReply> replies, Step first);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_RESIDUAL_FILE_H_
