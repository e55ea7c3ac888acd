// Loads the training and test parts of the data set of a task.
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

// Loads both parts; they have the same example shape and number of classes. Errors: those of the
// file formats.
absl::StatusOr<Datasets> LoadDatasets(const TaskSpec& task);

// Returns a hash of the examples, by which servers compare the data of workers. Never 0.
uint64_t ContentHash(const Datasets& datasets);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_LOAD_H_
