#include "worker/datasets/safetensors.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/safetensors.h"
#include "common/status_macros.h"
#include "worker/datasets/read_file.h"

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

}  // namespace

absl::StatusOr<Dataset> LoadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> file, ReadFile(path));
  ASSIGN_OR_RETURN(const SafetensorsIndex index, ParseSafetensors(file, path));
  const auto x = index.find("x");
  const auto y = index.find("y");
  if (x == index.end() || y == index.end()) {
    std::vector<std::string> names;
    for (const auto& [key, entry] : index) names.push_back(key);
    return Refuse(path, "missing tensors (expected x and y, got ", absl::StrJoin(names, ", "), ")");
  }
  const SafetensorsEntry& examples = x->second;
  const SafetensorsEntry& labels = y->second;
  if (examples.dtype != "F32" || examples.shape.size() < 2 || examples.bytes.empty()) {
    return Refuse(path, "x: wrong type or shape (expected non-empty F32 [n, ...], got ",
                  examples.dtype, " [", absl::StrJoin(examples.shape, ", "), "])");
  }
  const bool fits = labels.shape.size() == 1 && labels.shape[0] == examples.shape[0];
  if (!fits || (labels.dtype != "I64" && labels.dtype != "I32" && labels.dtype != "U8")) {
    return Refuse(path, "y: wrong type or shape (expected I64, I32 or U8 [", examples.shape[0],
                  "], got ", labels.dtype, " [", absl::StrJoin(labels.shape, ", "), "])");
  }
  Dataset dataset;
  dataset.example_shape.assign(examples.shape.begin() + 1, examples.shape.end());
  dataset.labels.resize(labels.value_count());
  const absl::Status status =
      labels.dtype == "I64"   ? CopyLabels<int64_t>(labels.bytes, path, dataset)
      : labels.dtype == "I32" ? CopyLabels<int32_t>(labels.bytes, path, dataset)
                              : CopyLabels<uint8_t>(labels.bytes, path, dataset);
  RETURN_IF_ERROR(status);
  dataset.floats.resize(examples.value_count());
  std::memcpy(dataset.floats.data(), examples.bytes.data(), examples.bytes.size());
  return dataset;
}

}  // namespace thinwire
