// The residual file: a worker's residuals, momenta and numbers of late examples (examples of late
// pushes, whose values are in the residual) on disk. The next process with the same worker number
// restores and sends them, and so does a process whose servers continue from an earlier step.
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
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
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

// Returns whether any value of SHARD may differ from 0.
template <typename Floats>
bool HasValues(const ShardResiduals<Floats>& shard) {
  return !shard.residual.empty() || !shard.momentum.empty();
}

// Returns the error of the file at PATH, which has values of the partition with the hash GOT.
absl::Status OtherPartitionError(const std::string& path, const Partition& partition, uint64_t got);

// The point in a job at which residuals were saved.
struct ResidualPoint {
  RunId run;
  Step step;  // the first step whose pushes the residuals do not include
};

struct SavedResiduals {
  ResidualPoint point;
  std::vector<ShardResiduals<std::vector<float>>> shards;  // indexed by shard number
};

// Returns views of SHARDS, which must outlive the result.
std::vector<ShardResidualsView> ViewsOf(std::span<const ShardResiduals<std::vector<float>>> shards);

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

// Reads only the head of the file at PATH. Errors: those of ReadResiduals.
absl::StatusOr<ResidualPoint> ReadResidualPoint(const std::string& path, const ResidualOwner& owner,
                                                const Partition& partition);

// A residual file and the point at which it was saved.
struct SavedPoint {
  std::string path;
  ResidualPoint point;
};

// The decision which residuals a joining worker restores (docs/decisions/0042). It depends on:
//
//   f      the step in the file: the file was written before this step
//   next   for each shard, the first step that the worker has not finished, in the state that the
//          servers have
//
//   another run   restore nothing
//   next == f     restore the shard
//   next > f      do not restore it: pushes after the save have sent a part of the residual
//   next < f      do not restore it: the servers have lost the pushes before the save
//
// Of several files, the newest that fits any shard is used.
struct ResidualStart {
  std::string path;            // the file to read; empty if no file belongs to the run
  std::vector<bool> restored;  // by shard: the shard in the file is restored
  std::string text;  // for the log; empty if the worker saves no residuals and none are lost
};

// Returns for each shard the first step that the worker has not finished (`next`).
std::vector<Step> NextSteps(std::span<const JoinReply> replies, uint32_t shard_count);

// Makes the decision. FOLDER is empty if residuals are not saved. FILES are the saved files, with
// ascending steps. REPLIES are the servers' replies to Join. AFTER_ROLLBACK: this process has
// residuals in its memory, so the text does not report the loss of those of an earlier process.
// REQUIRES: REPLIES is not empty.
ResidualStart DecideResidualStart(const std::string& folder, std::span<const SavedPoint> files,
                                  std::span<const JoinReply> replies, const Partition& partition,
                                  bool after_rollback);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_RESIDUAL_FILE_H_
