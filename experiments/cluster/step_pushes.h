// The work of a worker in one step: the gradient, or the difference of local steps, clipped and
// encoded as one push per shard, as worker/trainer/trainer.cc and client/exchange do it. Runs on a thread
// of the TaskPool.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_STEP_PUSHES_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_STEP_PUSHES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/encode/gradient_clip.h"
#include "client/encode/local_steps.h"
#include "client/encode/push_encoder.h"
#include "client/exchange/gtopk_returns.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "experiments/cluster/learning_task.h"
#include "proto/frame.h"

namespace thinwire::lab {

struct StepPushes {
  GradientResult gradient;        // of all local steps
  std::vector<PushEntry> pushes;  // by shard, without their computed_version
};

// The parts of a worker that encode its gradients. They must outlive a call of ComputePushes.
struct StepEncoder {
  const Partition& partition;
  client::PushEncoder& encoder;
  client::GradientClip& clip;
  client::LocalSteps* local = nullptr;            // null: no local steps
  const client::GtopkReturns* returns = nullptr;  // null: no values return to the worker
};

// Sets GRADIENT to the gradient of WORKER's STEP at PARAMETERS or, with LOCAL, to the difference of
// its local steps, which change PARAMETERS and restore them. Errors: those of the task.
absl::StatusOr<GradientResult> ComputeGradient(LearningTask& task, WorkerId worker, Step step,
                                               Tensors parameters, Tensors gradient,
                                               client::LocalSteps* local);

// Takes the local steps of WORKER's STEP from FIRST to before END, which change PARAMETERS. Ends at
// the first one without examples. The values of GRADIENT are undefined afterwards. Errors: those of
// the task.
absl::StatusOr<GradientResult> TakeLocalSteps(LearningTask& task, WorkerId worker, Step step,
                                              uint32_t first, uint32_t end, Tensors parameters,
                                              Tensors gradient, client::LocalSteps& local);

// Computes the gradient of WORKER's STEP at PARAMETERS and encodes it. Local steps change
// PARAMETERS and restore them. A step without examples gives pushes without values. Errors: those
// of the task and of the encoder.
absl::StatusOr<StepPushes> ComputePushes(LearningTask& task, WorkerId worker, Step step,
                                         Tensors parameters, const StepEncoder& encoder);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_STEP_PUSHES_H_
