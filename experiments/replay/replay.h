// RunReplay trains once more from a recording (recording.h): every shard applies the recorded events in
// the recorded order. Settings of the job may differ from the recorded run; the order may not.
//
//   payloads    The pushes have the recorded payloads: another server, the same gradients. For the learning
//               rate, the optimizer, a staleness policy.
//   gradients   The workers compute and encode their gradients anew. A gradient is computed from the state
//               that its shards had after the same events as in the recorded run. For all settings of the
//               optimizer, of push and of pull. Modes ssp and async.
//
// Without a change, both end with the parameters of the recorded run, bit for bit. A result has no
// times. A point of the curves is recorded when the slowest shard has the updates of shard 0.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_REPLAY_H_
#define THINWIRE_EXPERIMENTS_REPLAY_REPLAY_H_

#include "absl/status/statusor.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/run.h"
#include "experiments/replay/recording.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

enum class ReplayOf { kPayloads, kGradients };

// Replays RECORDING with the settings of SPEC.job; SPEC.machines and SPEC.folder are not read. TASK makes the
// recorded task. The result depends neither on the number of threads nor on a repetition. Errors:
// InvalidArgument for a changed setting that the recorded events do not allow, with its name;
// FailedPrecondition if the gradients of the recording cannot be computed again; Cancelled; errors of
// the task.
absl::StatusOr<RunResult> RunReplay(const Recording& recording, ReplayOf what, const RunSpec& spec,
                                    const MakeLearningTask& task, const RunControl& control);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_REPLAY_H_
