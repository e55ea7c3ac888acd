// Evaluate: a model's loss and accuracy over a whole data set.
#ifndef THINWIRE_WORKER_EVALUATE_H_
#define THINWIRE_WORKER_EVALUATE_H_

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"
#include "worker/model.h"

namespace thinwire {

// Every example once, in order. Errors: the model's.
absl::StatusOr<BatchResult> Evaluate(Model& model, const Dataset& dataset);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_EVALUATE_H_
