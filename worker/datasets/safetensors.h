// Datasets in safetensors files (common/files/safetensors.h), the simplest format for a dataset of
// your own.
#ifndef THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
#define THINWIRE_WORKER_DATASETS_SAFETENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

// Loads a dataset from a file with the tensors x, the examples (F32 [n, ...]), and y, the labels
// (I64, I32 or U8 [n], from 0). Ignores other tensors. class_count is the largest label plus one.
// Errors: NotFound if the file is missing; InvalidArgument if the file is not valid.
absl::StatusOr<Dataset> LoadSafetensors(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
