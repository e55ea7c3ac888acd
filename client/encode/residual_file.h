// The residual file: a worker's residuals, momenta and numbers of late examples (examples of late
// pushes, whose values are in the residual) on disk, so that the next process with the same worker
// number can restore and send them.
//
//   head         8 bytes "TWRESID2" | job length u32 | job | worker u32 | partition hash u64 |
//                run u64 | step u64 | shard count u32
//   every shard  values u32 | late examples u32 | residual u8 | momentum u8 |
//                values * 4 bytes for each of the two flags that is 1
//   end          CRC-32C of all preceding bytes, u32
//
// Numbers are little-endian. The flags `residual` and `momentum` are 0 if all values of the array
// are 0; the file then omits the array. The residuals contain the encoding errors of the steps
// before `step` of the run `run`.
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

// The saved state of one shard. The residual or the momentum is empty if all its values are zero.
// FLOATS is a span when a file is written and a vector when a file is read.
template <typename Floats>
struct ShardResiduals {
  Floats residual;             // codec errors and values of late pushes
  Floats momentum;             // the momentum u of momentum_correction.h
  uint32_t late_examples = 0;  // number of examples of late pushes in the residual
};
using ShardResidualsView = ShardResiduals<std::span<const float>>;

// The point in a job at which residuals were saved.
struct ResidualPoint {
  RunId run;
  Step step;  // the first step whose pushes the residuals do not include
};

struct SavedResiduals {
  ResidualPoint point;
  std::vector<ShardResiduals<std::vector<float>>> shards;  // indexed by shard number
};

// Replaces the file at PATH atomically. REQUIRES: SHARDS has one element for every shard of
// PARTITION; each element's residual and momentum are empty or have as many values as the shard.
// Errors: errors of the file system.
absl::Status WriteResiduals(const std::string& path, const ResidualOwner& owner,
                            const Partition& partition, const ResidualPoint& point,
                            std::span<const ShardResidualsView> shards);

// Reads the file at PATH. Errors: NotFound if there is no file; FailedPrecondition if the file
// belongs to another owner or partition; DataLoss if the file is damaged.
absl::StatusOr<SavedResiduals> ReadResiduals(const std::string& path, const ResidualOwner& owner,
                                             const Partition& partition);

// The decision whether a joining worker restores the residuals that an earlier process with the
// same worker number saved (docs/decisions/0042).
//
//   f       the step in the file: the file was written before this step
//   next    the step after the last step that an earlier process with this number has finished
//   first   the joining worker's first step
//
//   another run          start without residuals
//   next <= f <= first   restore
//   next > f             start without residuals: pushes after the save have sent a part of them
//   first < f            start without residuals: the servers have lost steps
//   no file              start without residuals
struct ResidualStart {
  bool restore = false;
  std::string text;  // for the log; empty if the worker saves no residuals and none are lost
};

// Decides whether to restore the residuals. REPLIES are the servers' replies to Join. PATH is empty
// if residuals are not saved. SAVED is the point in the file; nullopt if there is no file. FIRST is
// the worker's first step. REQUIRES: REPLIES is not empty.
ResidualStart DecideResidualStart(const std::string& path, std::optional<ResidualPoint> saved,
                                  std::span<const JoinReply> replies, Step first);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_RESIDUAL_FILE_H_
