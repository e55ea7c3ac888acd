#include "worker/datasets/load.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/crc32c.h"
#include "common/status_macros.h"
#include "worker/datasets/cifar10.h"
#include "worker/datasets/idx.h"
#include "worker/datasets/safetensors.h"

namespace thinwire {
namespace {

absl::StatusOr<Dataset> LoadPart(const TaskSpec& task, Part part) {
  const std::string& folder = task.data_dir;
  switch (task.dataset) {
    case DatasetKind::kFashionMnist:
      return LoadFashionMnist(folder, part);
    case DatasetKind::kCifar10:
      return LoadCifar10(folder, part);
    case DatasetKind::kSafetensors:
      break;
  }
  const char* name = part == Part::kTrain ? "train" : "test";
  return LoadSafetensors(absl::StrCat(folder, "/", name, ".safetensors"));
}

template <typename Value>
uint32_t Extend(uint32_t crc, const std::vector<Value>& values) {
  return Crc32c(std::as_bytes(std::span(values)), crc);
}

uint32_t Checksum(const Dataset& dataset) {
  uint32_t crc = Extend(0, dataset.example_shape);
  crc = Extend(crc, dataset.labels);
  crc = Extend(crc, dataset.bytes);
  return Extend(crc, dataset.floats);
}

}  // namespace

absl::StatusOr<Datasets> LoadDatasets(const TaskSpec& task) {
  ASSIGN_OR_RETURN(Dataset train, LoadPart(task, Part::kTrain));
  train.Truncate(task.train_examples);
  ASSIGN_OR_RETURN(Dataset test, LoadPart(task, Part::kTest));
  test.Truncate(task.test_examples);
  if (train.example_shape != test.example_shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        task.data_dir, ": test and training examples have different shapes (expected [",
        absl::StrJoin(train.example_shape, ", "), "], got [",
        absl::StrJoin(test.example_shape, ", "), "])"));
  }
  const uint32_t class_count = std::max(train.class_count, test.class_count);
  train.class_count = test.class_count = class_count;
  return Datasets{.train = std::move(train), .test = std::move(test)};
}

uint64_t ContentHash(const Datasets& datasets) {
  const uint64_t hash = uint64_t{Checksum(datasets.train)} << 32 | Checksum(datasets.test);
  return hash == 0 ? 1 : hash;
}

}  // namespace thinwire
