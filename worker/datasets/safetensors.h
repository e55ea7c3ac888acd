// Datasets in safetensors files (common/files/safetensors.h), the simplest format for a dataset of
// your own.
#ifndef THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
#define THINWIRE_WORKER_DATASETS_SAFETENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

// Loads a dataset from a file with two tensors of one row per example. Ignores other tensors.
//
//   tensor              loss: cross_entropy                 loss: script
//   x, the examples     F32, I64, I32 or U8 [n, dims...]    F32, I64, I32 or U8 [n, ...]
//   y                   classes: I64, I32 or U8 [n], >= 0   targets: F32, I64, I32 or U8 [n, ...]
//
// class_count is the largest class plus one. Errors: NotFound if the file is missing;
// InvalidArgument if the file is not valid.
absl::StatusOr<Dataset> LoadSafetensors(const std::string& path, LossKind loss);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
