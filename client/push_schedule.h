// PushSchedule: the codec of every step's pushes. A sparse run may begin denser
// (common/density_warmup.h), and any run with another codec (docs/training.md).
//
//   progress t = step / planned steps             codec
//   t < first_part                                warmup.first
//   else                                          push
//
// Where the codec is sparse, its density is warmup.density's at t. All depends on the step alone:
// the workers and shards of a step have the same codec, and a worker that comes back goes on where
// the job is.
#ifndef THINWIRE_CLIENT_PUSH_SCHEDULE_H_
#define THINWIRE_CLIENT_PUSH_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/spec/push_spec.h"

namespace thinwire::client {

// What vectors go in where matrices go in MATRICES: dense, and in a byte at least.
CodecSpec VectorSpec(const CodecSpec& matrices);

// Immutable.
class PushSchedule {
 public:
  // Errors: InvalidArgument for a part outside [0, 1], parts of a run of 0 planned steps, or specs
  // that make no codec.
  static absl::StatusOr<PushSchedule> Make(const CodecSpec& push, const PushWarmup& warmup,
                                           uint64_t planned_steps);

  // Of the pushes of STEP; makes a codec.
  CodecSpec At(Step step) const;

 private:
  PushSchedule(const CodecSpec& push, const PushWarmup& warmup, uint64_t planned_steps)
      : push_(push), warmup_(warmup), planned_steps_(planned_steps) {}

  CodecSpec push_;
  PushWarmup warmup_;
  uint64_t planned_steps_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PUSH_SCHEDULE_H_
