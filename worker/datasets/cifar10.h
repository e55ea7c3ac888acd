// CIFAR-10 in its binary form: five training batches and a test batch, rows of
//
//   label (1 byte, 0 to 9)   red (1024 bytes)   green (1024)   blue (1024)
#ifndef THINWIRE_WORKER_DATASETS_CIFAR10_H_
#define THINWIRE_WORKER_DATASETS_CIFAR10_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

// data_batch_1.bin to data_batch_5.bin or test_batch.bin out of FOLDER: [3, 32, 32] bytes, 10
// classes. A file may hold any number of rows. Errors: NotFound (naming the file and what the
// folder should be), InvalidArgument.
absl::StatusOr<Dataset> LoadCifar10(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_CIFAR10_H_
