// A worker's residuals on disk: what its process owes, so that the next one of its number can pay.
//
//   head         8 bytes "TWRESID1" | job length u32 | job | worker u32 | partition hash u64 |
//                step u64 | shard count u32
//   every shard  values u32 | owed examples u32 | residual u8 | momentum u8 |
//                values * 4 bytes for each of the two that is 1
//   end          CRC-32C of all before, u32
//
// Little-endian; an array that is 0 is left out. The step is the first one that the residuals have
// not gone through.
#ifndef THINWIRE_CLIENT_RESIDUAL_FILE_H_
#define THINWIRE_CLIENT_RESIDUAL_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// Whose residuals they are.
struct ResidualOwner {
  std::string job;
  WorkerId worker;
};

// What is kept of one shard; an array is empty where it is zero. FLOATS is a span of floats to be
// written, or a vector of those that were read.
template <typename Floats>
struct ShardResiduals {
  Floats residual;             // the v of error feedback
  Floats momentum;             // the u of momentum correction
  uint32_t late_examples = 0;  // behind the values of late pushes in the residual
};
using ShardResidualsView = ShardResiduals<std::span<const float>>;

struct SavedResiduals {
  Step step;
  std::vector<ShardResiduals<std::vector<float>>> shards;  // by shard number
};

// Replaces the file at PATH, or leaves it as it was. REQUIRES: SHARDS has one for every shard of
// PARTITION, each array empty or of as many values as the shard has. Errors: the system's.
absl::Status WriteResiduals(const std::string& path, const ResidualOwner& owner,
                            const Partition& partition, Step step,
                            std::span<const ShardResidualsView> shards);

// Errors: NotFound if there is no file; FailedPrecondition if it is another owner's or partition's;
// DataLoss if it is damaged; each with what was wanted and what came.
absl::StatusOr<SavedResiduals> ReadResiduals(const std::string& path, const ResidualOwner& owner,
                                             const Partition& partition);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_RESIDUAL_FILE_H_
