// Checks at the start of a run that a module that computes the loss itself (loss: script) can be
// trained.
#ifndef THINWIRE_WORKER_TRAINER_LOSS_CHECK_H_
#define THINWIRE_WORKER_TRAINER_LOSS_CHECK_H_

#include "absl/status/status.h"
#include "worker/datasets/dataset.h"
#include "worker/models/model.h"

namespace thinwire {

// Trains and tests MODEL on the first two examples of TRAIN, without changing its parameters, and
// sets its buffers to their initial values. Errors: InvalidArgument if a pass fails, the loss is not
// finite or has no gradient, or the loss is a sum over the batch. A sum would weight the gradients
// of the workers and of the batches wrongly: they are averaged as means over examples. REQUIRES:
// TRAIN has an example.
absl::Status CheckLoss(Model& model, const Dataset& train);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_LOSS_CHECK_H_
