// PushSchedule: the codec of every step's pushes. What a run learns in its first steps moves far
// more than a thousandth of the values, so a sparse run may begin denser, or with another codec
// (Lin et al. 2018, section 3.3; docs/training.md).
//
//   progress t = step / planned steps             codec
//   t < first_part                                warmup.first
//   else                                          push
//
//   density, where the codec is sparse:  warmup.density^(1 - p) * push.density^p,
//                                        p = min(1, t / density_part)
//
// So the density falls by the same factor in every step, from warmup.density at step 0 to the one
// asked for. It depends on the step alone: all workers and shards of a step have the same one, and
// a worker that comes back goes on where the job is.
#ifndef THINWIRE_CLIENT_PUSH_SCHEDULE_H_
#define THINWIRE_CLIENT_PUSH_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "common/ids.h"

namespace thinwire {

// How a run begins otherwise than it goes on. Parts are of the planned steps, 0 to 1.
struct PushWarmup {
  double density_part = 0;
  double density = 0.1;
  double first_part = 0;
  CodecSpec first;  // its density is the schedule's
};

namespace client {

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

  double DensityAt(double progress) const;

  CodecSpec push_;
  PushWarmup warmup_;
  uint64_t planned_steps_;
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_PUSH_SCHEDULE_H_
