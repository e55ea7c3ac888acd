// The training and the test part of the data set that a Task names.
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

// Both have the same example shape and class count. Errors: InvalidArgument that lists the data
// sets there are, or those of the file formats.
absl::StatusOr<Datasets> LoadDatasets(const Task& task);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_LOAD_H_
