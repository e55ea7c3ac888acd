// RunImposedStaleness trains with an exact staleness, on the real shards and the client's encoder. The
// workers push in turns, and every gradient is computed from the parameters of exactly
// `imposed_staleness` turns before its own:
//
//   turn of WORKER's push of STEP     STEP * workers + WORKER
//   parameters of the push            those after max(0, turn - staleness) turns
//
// The shards count the staleness. If a push makes no update (it has no examples or was refused), the
// staleness of the pushes that follow is one less. A gradient begins when its parameters exist and the
// worker's last push is judged; a push is applied when it is its turn. Links and codecs take no time.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_IMPOSED_STALENESS_H_
#define THINWIRE_EXPERIMENTS_REPLAY_IMPOSED_STALENESS_H_

#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"

namespace thinwire::lab {

// See run.h. REQUIRES: spec.machines has an imposed_staleness.
absl::StatusOr<RunResult> RunImposedStaleness(const RunSpec& spec, const MakeLearningTask& task,
                                              const RunControl& control);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_IMPOSED_STALENESS_H_
