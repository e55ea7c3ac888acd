// Loads the training and test parts of a Task's data set.
#ifndef THINWIRE_WORKER_DATASETS_LOAD_H_
#define THINWIRE_WORKER_DATASETS_LOAD_H_

#include "absl/status/statusor.h"
#include "proto/config.pb.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

struct Datasets {
  Dataset train;
  Dataset test;
};

// Loads both parts; they have the same example shape and number of classes. Errors: InvalidArgument
// for an unknown data set, with the list of known ones; the errors of the file formats.
absl::StatusOr<Datasets> LoadDatasets(const Task& task);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_LOAD_H_
