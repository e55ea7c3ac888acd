// CIFAR-10's binary version: five training files and a test file of rows
//
//   label (1 byte, 0 to 9)   red (1024 bytes)   green (1024)   blue (1024)
#ifndef THINWIRE_WORKER_DATASETS_CIFAR10_H_
#define THINWIRE_WORKER_DATASETS_CIFAR10_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

// Loads data_batch_1.bin to data_batch_5.bin, or test_batch.bin: [3, 32, 32] bytes and 10 classes.
// A file may have any number of rows. Errors: NotFound with the missing file and the expected
// folder; InvalidArgument for an invalid file.
absl::StatusOr<Dataset> LoadCifar10(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_CIFAR10_H_
