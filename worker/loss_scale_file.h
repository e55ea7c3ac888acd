// A worker's loss scale on disk, for the next process of its number to go on with. It stands beside
// the residual file and is saved at the same moments, but is restored also where that is not
// (docs/decisions/0056): it is a setting that was found, and nothing that is owed.
//
//   8 bytes "TWSCALE1" | job length u32 | job | worker u32 | scale f32 | good steps u64 |
//   CRC-32C of all before, u32
//
// Little-endian.
#ifndef THINWIRE_WORKER_LOSS_SCALE_FILE_H_
#define THINWIRE_WORKER_LOSS_SCALE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "worker/loss_scale.h"

namespace thinwire {

// Whose loss scale stands where.
struct LossScalePlace {
  std::string path;
  std::string job;
  WorkerId worker;
};

// Replaces the file, or leaves it as it was. Errors: the system's.
absl::Status WriteLossScale(const LossScalePlace& place, const LossScale::State& state);

// Errors: NotFound if there is no file; FailedPrecondition if it is not this worker's of this job;
// DataLoss if it is damaged or holds no power of two.
absl::StatusOr<LossScale::State> ReadLossScale(const LossScalePlace& place);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_LOSS_SCALE_FILE_H_
