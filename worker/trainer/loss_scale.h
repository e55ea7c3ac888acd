// LossScale is the factor by which a worker multiplies its loss, so that small gradients do not
// underflow in low precision (dynamic loss scaling, Micikevicius et al. 2018, section 3.2). The
// settings are in common/spec/task_spec.h.
//
//   after                                              scale                       good steps
//   a step whose gradients are finite                  unchanged                   one more
//   `interval` such steps in a row                     doubles, at most `largest`  0
//   a step with a gradient that is not finite          halves, at least 1          0
//
// The scale is a power of two, so dividing it out of a gradient is exact. The scale is never below
// 1: with a scale of 1, the model or the data cause a gradient that is not finite, and a smaller
// scale would only make more gradients underflow.
//
// The scale is saved in a file of its own, beside the residual file and at the same times
// (client/encode/worker_folder.h). A new process restores the scale even if it does not restore the
// residuals (docs/decisions/0056), because the scale is a tuned setting.
//
//   8 bytes "TWSCALE1" | job length u32 | job | worker u32 | scale f32 | good steps u64 |
//   CRC-32C of all preceding bytes, u32
//
// Numbers are little-endian.
#ifndef THINWIRE_WORKER_TRAINER_LOSS_SCALE_H_
#define THINWIRE_WORKER_TRAINER_LOSS_SCALE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/task_spec.h"

namespace thinwire {

// Not thread-safe.
class LossScale {
 public:
  // The state that is saved in the loss-scale file.
  struct State {
    float value = 1;
    uint64_t good_steps = 0;  // consecutive steps with finite gradients

    bool operator==(const State&) const = default;
  };

  // REQUIRES: scaling.first and scaling.largest are powers of two and 1 <= first <= largest.
  explicit LossScale(const LossScaling& scaling)
      : scaling_(scaling), state_{.value = scaling.first} {}

  float value() const { return state_.value; }
  const State& state() const { return state_; }
  // Returns the number of steps of this process with a gradient that is not finite.
  uint64_t overflow_count() const { return overflow_count_; }

  // Updates the scale after a step whose gradients are all finite.
  void Good();
  // Updates the scale after a step with a gradient that is not finite.
  void Overflowed();

  // Sets the state to `state`, which an earlier process saved. If the saved scale is above the
  // largest scale of the settings, uses the largest scale. REQUIRES: state.value is a power of two
  // and at least 1.
  void Restore(const State& state);

 private:
  LossScaling scaling_;
  State state_;
  uint64_t overflow_count_ = 0;
};

// The path of a worker's loss-scale file, and the file's owner.
struct LossScaleFile {
  std::string path;
  std::string job;
  WorkerId worker;
};

// Returns the path of the loss-scale file beside the residual file at RESIDUAL_PATH.
inline std::string LossScalePath(const std::string& residual_path) {
  return residual_path + ".loss_scale";
}

// Replaces the loss-scale file atomically. Errors: errors of the file system; the old file then
// remains.
absl::Status WriteLossScale(const LossScaleFile& file, const LossScale::State& state);

// Reads the loss-scale file. Errors: NotFound if there is no file; FailedPrecondition if the file
// belongs to another worker or job; DataLoss if the file is damaged or the scale is not a power of
// two or is below 1.
absl::StatusOr<LossScale::State> ReadLossScale(const LossScaleFile& file);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_LOSS_SCALE_H_
