#include "worker/datasets/cifar10.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/datasets/read_file.h"

namespace thinwire {
namespace {

constexpr size_t kImageBytes = 3 * 32 * 32;
constexpr size_t kRowBytes = 1 + kImageBytes;
constexpr int kClassCount = 10;

absl::Status Append(const std::string& path, Dataset& dataset) {
  const absl::StatusOr<std::vector<uint8_t>> file = ReadFile(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(
        absl::StrCat(file.status().message(),
                     " (expected the folder cifar-10-batches-bin of CIFAR-10's binary version)"));
  }
  RETURN_IF_ERROR(file.status());
  if (file->empty() || file->size() % kRowBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": wrong length (expected a multiple of ",
                                                   kRowBytes, " bytes, got ", file->size(), ")"));
  }
  for (size_t at = 0; at < file->size(); at += kRowBytes) {
    const auto row = file->begin() + static_cast<ptrdiff_t>(at);
    if (*row >= kClassCount) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": label of row ", at / kRowBytes,
                                                     ": out of range (expected 0 to 9, got ",
                                                     int{*row}, ")"));
    }
    dataset.labels.push_back(*row);
    dataset.bytes.insert(dataset.bytes.end(), row + 1, row + kRowBytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Dataset> LoadCifar10(const std::string& folder, Part part) {
  // The means and standard deviations of the three channels over the 50,000 training images.
  Dataset dataset = {
      .example_shape = {3, 32, 32},
      .class_count = kClassCount,
      .scalings = {Scaling::Normalizing(0.4914, 0.2470), Scaling::Normalizing(0.4822, 0.2435),
                   Scaling::Normalizing(0.4465, 0.2616)}};
  std::vector<std::string> names = {"test_batch.bin"};
  if (part == Part::kTrain) {
    names.clear();
    for (int i = 1; i <= 5; ++i) names.push_back(absl::StrCat("data_batch_", i, ".bin"));
  }
  for (const std::string& name : names) {
    RETURN_IF_ERROR(Append(absl::StrCat(folder, "/", name), dataset));
  }
  return dataset;
}

}  // namespace thinwire
