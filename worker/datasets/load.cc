#include "worker/datasets/load.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"
#include "common/status_macros.h"
#include "worker/datasets/cifar10.h"
#include "worker/datasets/idx.h"
#include "worker/datasets/safetensors.h"

namespace thinwire {
namespace {

absl::StatusOr<Dataset> LoadPart(const Task& task, Part part) {
  const std::string& folder = task.data_dir();
  if (task.dataset() == "fashion_mnist") return LoadFashionMnist(folder, part);
  if (task.dataset() == "cifar10") return LoadCifar10(folder, part);
  if (task.dataset() == "safetensors") {
    const char* name = part == Part::kTrain ? "train" : "test";
    return LoadSafetensors(absl::StrCat(folder, "/", name, ".safetensors"));
  }
  static constexpr std::string_view kNames[] = {"fashion_mnist", "cifar10", "safetensors"};
  return UnknownWord("dataset", task.dataset(), kNames);
}

}  // namespace

absl::StatusOr<Datasets> LoadDatasets(const Task& task) {
  ASSIGN_OR_RETURN(Dataset train, LoadPart(task, Part::kTrain));
  train.Truncate(task.train_examples());
  ASSIGN_OR_RETURN(Dataset test, LoadPart(task, Part::kTest));
  test.Truncate(task.test_examples());
  if (train.example_shape != test.example_shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        task.data_dir(), ": test and training examples have different shapes (expected [",
        absl::StrJoin(train.example_shape, ", "), "], got [",
        absl::StrJoin(test.example_shape, ", "), "])"));
  }
  const uint32_t class_count = std::max(train.class_count, test.class_count);
  train.class_count = test.class_count = class_count;
  return Datasets{.train = std::move(train), .test = std::move(test)};
}

}  // namespace thinwire
