// TrainerState: the state of a trainer that belongs to a step, besides the residuals and the loss
// scale: the buffers of the model (the running moments of batch normalization) and the state of the
// local optimizer. It is saved in a file beside the residual file, at the same times
// (client/encode/worker_folder.h). A process that begins at the step of the file restores it.
//
//   head     8 bytes "TWTRAIN1" | job length u32 | job | worker u32 | step u64
//   buffers  count u32; each: name, type (length u32, bytes) | dimensions u32 | i64 each |
//            length u64 | bytes
//   local    applied local steps u64 | slots u32; each: values u64 | fp32 each
//            with streaming local steps, x and base are two more slots, and step u64 follows: the
//            step whose parameters x was mixed with, plus 1; 0 if x has no values
//   end      CRC-32C of all preceding bytes, u32
//
// Numbers are little-endian.
#ifndef THINWIRE_WORKER_TRAINER_TRAINER_STATE_H_
#define THINWIRE_WORKER_TRAINER_TRAINER_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/local_steps.h"
#include "client/encode/streaming_steps.h"
#include "common/base/ids.h"
#include "worker/models/model.h"

namespace thinwire {

struct TrainerState {
  std::vector<ModelBuffer> buffers;  // empty: not saved
  client::LocalSteps::State local;
  client::StreamingSteps::State streaming;  // empty without streaming local steps

  bool operator==(const TrainerState&) const = default;
};

// The path of a trainer's state file, its owner and its step.
struct TrainerStateFile {
  std::string path;
  std::string job;
  WorkerId worker;
  Step step;
};

// Returns the path of the state file beside the residual file at RESIDUAL_PATH.
inline std::string TrainerStatePath(const std::string& residual_path) {
  return residual_path + ".trainer";
}

// Replaces the file atomically. Errors: errors of the file system; the old file then remains.
absl::Status WriteTrainerState(const TrainerStateFile& file, const TrainerState& state);

// Reads the file. EXPECTED has the buffers and slots that the present model and local optimizer
// have; their values are not used. Errors: NotFound if there is no file; FailedPrecondition if the
// file belongs to another worker, job or step, or if a name, type, shape or size differs from
// EXPECTED; DataLoss if the file is damaged.
absl::StatusOr<TrainerState> ReadTrainerState(const TrainerStateFile& file, TrainerState expected);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_TRAINER_STATE_H_
