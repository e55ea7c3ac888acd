// The binary version of CIFAR-10: five training files and a test file. A file consists of rows, one
// per image:
//
//   label (1 byte, 0 to 9) | red (1024 bytes) | green (1024 bytes) | blue (1024 bytes)
#ifndef THINWIRE_WORKER_DATASETS_CIFAR10_H_
#define THINWIRE_WORKER_DATASETS_CIFAR10_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

// Loads the training part, data_batch_1.bin to data_batch_5.bin, or the test part, test_batch.bin.
// An example has [3, 32, 32] bytes; there are 10 classes. A file may have any number of rows.
// Errors: NotFound with the missing file and the expected folder; InvalidArgument for an invalid
// file.
absl::StatusOr<Dataset> LoadCifar10(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_CIFAR10_H_
