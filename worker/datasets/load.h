// Loads the training part and the test part of a task's dataset.
#ifndef THINWIRE_WORKER_DATASETS_LOAD_H_
#define THINWIRE_WORKER_DATASETS_LOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

struct Datasets {
  Dataset train;
  Dataset test;
};

// Loads the training part and the test part of the task's dataset. Both parts get the same number
// of classes. Errors: InvalidArgument if the example shapes differ; errors of the functions that
// load the file formats.
absl::StatusOr<Datasets> LoadDatasets(const TaskSpec& task);

// Returns a hash of the examples, with which servers check that all workers have the same data. The
// hash is never 0.
uint64_t ContentHash(const Datasets& datasets);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_LOAD_H_
