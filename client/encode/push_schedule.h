// PushSchedule: the push codec of each step. A run may begin with another codec, and a sparse run
// with a higher density (common/density_warmup.h, docs/training.md).
//
//   progress t = step / planned steps             codec
//   t < first_part                                warmup.first
//   otherwise                                     push
//
// A sparse codec has the density of warmup.density at t. The codec depends on the step only: all
// workers and shards use the same codec in a step, and a worker that rejoins uses the codec of the
// job's current step.
#ifndef THINWIRE_CLIENT_ENCODE_PUSH_SCHEDULE_H_
#define THINWIRE_CLIENT_ENCODE_PUSH_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/spec/push_spec.h"

namespace thinwire {

namespace client {

// Returns the codec of vectors in a step that encodes matrices with MATRICES: a dense codec of 8
// bits or more.
CodecSpec VectorSpec(const CodecSpec& matrices);

// Immutable.
class PushSchedule {
 public:
  // Errors: InvalidArgument for a part outside [0, 1], a part above 0 with 0 planned steps, or a
  // spec that describes no valid codec.
  static absl::StatusOr<PushSchedule> Make(const CodecSpec& push, const PushWarmup& warmup,
                                           uint64_t planned_steps);

  // Returns the codec of the pushes of STEP. MakeCodec accepts it.
  CodecSpec At(Step step) const;

 private:
  PushSchedule(const CodecSpec& push, const PushWarmup& warmup, uint64_t planned_steps)
      : push_(push), warmup_(warmup), planned_steps_(planned_steps) {}

  CodecSpec push_;
  PushWarmup warmup_;
  uint64_t planned_steps_;
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_ENCODE_PUSH_SCHEDULE_H_
