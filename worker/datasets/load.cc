#include "worker/datasets/load.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "worker/datasets/cifar10.h"
#include "worker/datasets/idx.h"
#include "worker/datasets/safetensors.h"
#include "worker/datasets/values.h"

namespace thinwire {
namespace {

// Loads images. With loss: script, their classes are the targets.
absl::StatusOr<Dataset> LoadImages(const TaskSpec& task, Part part) {
  const bool fashion = task.dataset == DatasetKind::kFashionMnist;
  ASSIGN_OR_RETURN(Dataset dataset, fashion ? LoadFashionMnist(task.data_dir, part)
                                            : LoadCifar10(task.data_dir, part));
  if (task.loss == LossKind::kScript) dataset.MakeLabelsTargets();
  return dataset;
}

absl::StatusOr<Dataset> LoadPart(const TaskSpec& task, Part part) {
  if (task.dataset != DatasetKind::kSafetensors) return LoadImages(task, part);
  const char* name = part == Part::kTrain ? "train" : "test";
  return LoadSafetensors(absl::StrCat(task.data_dir, "/", name, ".safetensors"), task.loss);
}

template <typename Value>
uint32_t Extend(uint32_t crc, const std::vector<Value>& values) {
  return Crc32c(std::as_bytes(std::span(values)), crc);
}

uint32_t Extend(uint32_t crc, const Values& values) {
  return std::visit([crc](const auto& vector) { return Extend(crc, vector); }, values);
}

// Returns the type and the shape of a tensor for an error message.
std::string FormText(ValueType type, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(kValueTypeNames[static_cast<size_t>(type)]), " [",
                      absl::StrJoin(shape, ", "), "]");
}

// Checks that a row of the tensor NAME has the same form in both parts.
absl::Status CheckSameForm(const TaskSpec& task, const char* name, const std::string& train,
                           const std::string& test) {
  if (train == test) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(task.data_dir, ": ", name,
                   ": test and training examples have different forms "
                   "(expected ",
                   train, ", got ", test, ")"));
}

uint32_t Checksum(const Dataset& dataset) {
  uint32_t crc = Extend(0, dataset.example_shape);
  crc = Extend(crc, dataset.labels);
  crc = Extend(crc, dataset.bytes);
  crc = Extend(crc, dataset.values);
  crc = Extend(crc, dataset.target_shape);
  return Extend(crc, dataset.targets);
}

}  // namespace

absl::StatusOr<Datasets> LoadDatasets(const TaskSpec& task) {
  ASSIGN_OR_RETURN(Dataset train, LoadPart(task, Part::kTrain));
  train.Truncate(task.train_examples);
  ASSIGN_OR_RETURN(Dataset test, LoadPart(task, Part::kTest));
  test.Truncate(task.test_examples);
  RETURN_IF_ERROR(CheckSameForm(task, "x", FormText(train.value_type(), train.example_shape),
                                FormText(test.value_type(), test.example_shape)));
  RETURN_IF_ERROR(CheckSameForm(task, "y", FormText(TypeOf(train.targets), train.target_shape),
                                FormText(TypeOf(test.targets), test.target_shape)));
  const uint32_t class_count = std::max(train.class_count, test.class_count);
  train.class_count = test.class_count = class_count;
  return Datasets{.train = std::move(train), .test = std::move(test)};
}

uint64_t ContentHash(const Datasets& datasets) {
  const uint64_t hash = uint64_t{Checksum(datasets.train)} << 32 | Checksum(datasets.test);
  return hash == 0 ? 1 : hash;
}

}  // namespace thinwire
