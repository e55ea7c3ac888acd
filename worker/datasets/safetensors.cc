#include "worker/datasets/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/safetensors.h"
#include "worker/datasets/read_file.h"
#include "worker/datasets/values.h"

namespace thinwire {
namespace {

template <typename... Parts>
absl::Status Refuse(const std::string& path, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", parts...));
}

template <typename T>
absl::Status CopyLabels(std::span<const uint8_t> bytes, const std::string& path, Dataset& dataset) {
  constexpr int64_t kMaxClasses = 65'536;
  for (size_t i = 0; i < dataset.labels.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    const auto label = static_cast<int64_t>(value);
    if (label < 0 || label >= kMaxClasses) {
      return Refuse(path, "y[", i, "]: label out of range (expected 0 to ", kMaxClasses - 1,
                    ", got ", label, ")");
    }
    dataset.labels[i] = static_cast<int32_t>(label);
    dataset.class_count = std::max(dataset.class_count, static_cast<uint32_t>(label) + 1);
  }
  return absl::OkStatus();
}

template <typename T>
Values CopyValues(std::span<const uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Returns the values of a tensor, or nullopt if its type is no ValueType.
std::optional<Values> ValuesOf(const SafetensorsEntry& tensor) {
  if (tensor.dtype == "F32") return CopyValues<float>(tensor.bytes);
  if (tensor.dtype == "I64") return CopyValues<int64_t>(tensor.bytes);
  if (tensor.dtype == "I32") return CopyValues<int32_t>(tensor.bytes);
  if (tensor.dtype == "U8") return CopyValues<uint8_t>(tensor.bytes);
  return std::nullopt;
}

// Copies the tensor NAME of a file, which has a row per example, to VALUES and the shape of a row to
// SHAPE. LEAST_RANK is the least number of dimensions: 1 or 2.
absl::Status CopyTensor(const std::string& path, const std::string& name,
                        const SafetensorsEntry& tensor, size_t least_rank, Values& values,
                        std::vector<int64_t>& shape) {
  std::optional<Values> copied = ValuesOf(tensor);
  if (!copied.has_value() || tensor.shape.size() < least_rank || tensor.bytes.empty()) {
    return Refuse(path, name, ": wrong type or shape (expected non-empty F32, I64, I32 or U8 ",
                  least_rank == 1 ? "[n, ...]" : "[n, dims...]", ", got ", tensor.dtype, " [",
                  absl::StrJoin(tensor.shape, ", "), "])");
  }
  values = *std::move(copied);
  shape.assign(tensor.shape.begin() + 1, tensor.shape.end());
  return absl::OkStatus();
}

absl::Status LoadLabels(const std::string& path, const SafetensorsEntry& y, int64_t rows,
                        Dataset& dataset) {
  const bool fits = y.shape.size() == 1 && y.shape[0] == rows;
  if (!fits || (y.dtype != "I64" && y.dtype != "I32" && y.dtype != "U8")) {
    return Refuse(path, "y: wrong type or shape (expected I64, I32 or U8 [", rows,
                  "], the classes, or loss: script for other targets, got ", y.dtype, " [",
                  absl::StrJoin(y.shape, ", "), "])");
  }
  dataset.labels.resize(y.value_count());
  if (y.dtype == "I64") return CopyLabels<int64_t>(y.bytes, path, dataset);
  if (y.dtype == "I32") return CopyLabels<int32_t>(y.bytes, path, dataset);
  return CopyLabels<uint8_t>(y.bytes, path, dataset);
}

}  // namespace

absl::StatusOr<Dataset> LoadSafetensors(const std::string& path, LossKind loss) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> file, ReadFile(path));
  ASSIGN_OR_RETURN(const SafetensorsIndex index, ParseSafetensors(file, path));
  const auto x = index.find("x");
  const auto y = index.find("y");
  if (x == index.end() || y == index.end()) {
    std::vector<std::string> names;
    for (const auto& [key, entry] : index) names.push_back(key);
    return Refuse(path, "missing tensors (expected x and y, got ", absl::StrJoin(names, ", "), ")");
  }
  Dataset dataset;
  const bool has_classes = loss == LossKind::kCrossEntropy;
  RETURN_IF_ERROR(
      CopyTensor(path, "x", x->second, has_classes ? 2 : 1, dataset.values, dataset.example_shape));
  const int64_t rows = x->second.shape[0];
  if (has_classes) {
    RETURN_IF_ERROR(LoadLabels(path, y->second, rows, dataset));
    return dataset;
  }
  RETURN_IF_ERROR(
      CopyTensor(path, "y", y->second, /*least_rank=*/1, dataset.targets, dataset.target_shape));
  if (y->second.shape[0] != rows) {
    return Refuse(path, "y: wrong number of rows (expected ", rows, ", as x, got ",
                  y->second.shape[0], ")");
  }
  return dataset;
}

}  // namespace thinwire
