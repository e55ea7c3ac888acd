// PushSchedule: the push codec of each step. A run may use another codec at its beginning, and a
// sparse codec may begin with a higher density (common/codec/sparse/density_warmup.h, docs/sparse_training.md).
//
//   progress t = step / planned steps             codec
//   t < first_part                                warmup.first
//   otherwise                                     push
//
// The density of a sparse codec is the value of warmup.density at progress t. The codec depends
// only on the step: all workers and shards use the same codec in a step, and a worker that rejoins
// uses the codec of the job's current step.
#ifndef THINWIRE_CLIENT_ENCODE_PUSH_SCHEDULE_H_
#define THINWIRE_CLIENT_ENCODE_PUSH_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"

namespace thinwire {

namespace client {

// Returns the codec for vectors in a step that encodes matrices with the codec MATRICES. The result
// is a dense codec of 8 bits or more.
CodecSpec VectorSpec(const CodecSpec& matrices);
// Returns the spec of each shard of PARTITION with the arms CHOSEN; nullopt: that of the rule
// fastest.
std::vector<std::optional<CodecSpec>> ShardSpecs(std::span<const AdaptiveSpec::Arm> arms,
                                                 const KindArms& chosen,
                                                 const Partition& partition);

// Immutable.
class PushSchedule {
 public:
  // Errors: InvalidArgument if a fraction of the run in WARMUP is outside [0, 1], if such a
  // fraction is above 0 although planned_steps is 0, or if a spec describes no valid codec.
  static absl::StatusOr<PushSchedule> Make(const CodecSpec& push, const PushWarmup& warmup,
                                           uint64_t planned_steps);

  // Returns the spec of the push codec of STEP. MakeCodec accepts every such spec.
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
