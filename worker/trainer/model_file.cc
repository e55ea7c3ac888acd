#include "worker/trainer/model_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/files/file_kind.h"
#include "common/files/safetensors.h"
#include "worker/datasets/read_file.h"

namespace thinwire {
namespace {

// A tensor of a file to write.
struct Content {
  SafetensorsTensor tensor;
  std::span<const uint8_t> values;
};

uint64_t ValueBytes(const Content& content) {
  uint64_t count = 1;
  for (const int64_t dimension : content.tensor.shape) count *= static_cast<uint64_t>(dimension);
  return count == 0 ? 0 : content.values.size() / count;
}

std::string ShapeText(const std::string& dtype, std::span<const int64_t> shape) {
  return absl::StrCat(dtype, " [", absl::StrJoin(shape, ", "), "]");
}

// Checks that the bytes of a file are those of a safetensors file.
absl::Status CheckKind(std::span<const uint8_t> file, const std::string& path) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()),
                               std::min(file.size(), kFileKindBytes));
  const std::string_view kind = FileKind(start);
  if (kind == "a safetensors file") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": not a model file (expected a safetensors file, got ",
                   file.empty()   ? "an empty file"
                   : kind.empty() ? "a text"
                                  : std::string(kind),
                   ")"));
}

// The tensors of a file. Each is taken once.
class FileTensors {
 public:
  FileTensors(SafetensorsIndex index, const std::string& path)
      : index_(std::move(index)), path_(path) {}

  // Returns the bytes of a tensor.
  absl::StatusOr<std::span<const uint8_t>> Take(const std::string& name, const std::string& dtype,
                                                const std::vector<int64_t>& shape) {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": tensor \"", name, "\" is missing (expected ", ShapeText(dtype, shape), ")"));
    }
    const SafetensorsEntry entry = found->second;
    if (entry.dtype != dtype || entry.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": tensor \"", name, "\": wrong type or shape (expected ", ShapeText(dtype, shape),
          ", got ", ShapeText(entry.dtype, entry.shape), ")"));
    }
    index_.erase(found);
    return entry.bytes;
  }

  // Returns an error if a tensor was not taken.
  absl::Status CheckAllTaken() const {
    if (index_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": the model has no tensor \"", index_.begin()->first, "\" (got ", index_.size(),
        index_.size() == 1 ? " tensor" : " tensors", " that the model does not have)"));
  }

 private:
  SafetensorsIndex index_;
  const std::string& path_;
};

}  // namespace

absl::Status WriteModelFile(const std::string& path, const Model& model,
                            std::span<const std::vector<float>> parameters,
                            const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const std::vector<ModelBuffer> buffers, model.Buffers());
  std::vector<Content> contents;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const TensorShape& tensor = model.tensors()[i];
    const auto* bytes = reinterpret_cast<const uint8_t*>(parameters[i].data());
    const std::span<const uint8_t> values(bytes, parameters[i].size() * sizeof(float));
    contents.push_back({{tensor.name, "F32", tensor.shape, values.size()}, values});
  }
  for (const TensorAlias& alias : model.aliases()) {
    Content content = contents[alias.tensor];
    content.tensor.name = alias.name;
    contents.push_back(std::move(content));
  }
  for (const ModelBuffer& buffer : buffers) {
    contents.push_back(
        {{buffer.name, buffer.dtype, buffer.shape, buffer.bytes.size()}, buffer.bytes});
  }
  // PyTorch requires that every value is aligned to its size.
  std::ranges::stable_sort(contents, std::greater(), ValueBytes);

  std::vector<SafetensorsTensor> tensors;
  for (const Content& content : contents) tensors.push_back(content.tensor);
  std::map<std::string, std::string> header = metadata;
  header["format"] = "pt";
  AtomicFile file(path);
  const std::string start = SafetensorsHeader(tensors, header);
  file.Write(std::as_bytes(std::span(start)));
  for (const Content& content : contents) file.Write(std::as_bytes(content.values));
  return file.Commit();
}

absl::StatusOr<std::vector<std::vector<float>>> ReadModelFile(const std::string& path,
                                                              Model& model) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> file, ReadFile(path));
  RETURN_IF_ERROR(CheckKind(file, path));
  ASSIGN_OR_RETURN(SafetensorsIndex index, ParseSafetensors(file, path));
  FileTensors tensors(std::move(index), path);
  std::vector<std::vector<float>> parameters;
  for (const TensorShape& tensor : model.tensors()) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                     tensors.Take(tensor.name, "F32", tensor.shape));
    std::vector<float>& values = parameters.emplace_back(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  for (const TensorAlias& alias : model.aliases()) {
    const TensorShape& tensor = model.tensors()[alias.tensor];
    ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                     tensors.Take(alias.name, "F32", tensor.shape));
    if (std::memcmp(bytes.data(), parameters[alias.tensor].data(), bytes.size()) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor \"", alias.name, "\": wrong values (expected those of \"",
                     tensor.name, "\", with which the model ties it, got others)"));
  }
  ASSIGN_OR_RETURN(std::vector<ModelBuffer> buffers, model.Buffers());
  for (ModelBuffer& buffer : buffers) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                     tensors.Take(buffer.name, buffer.dtype, buffer.shape));
    buffer.bytes.assign(bytes.begin(), bytes.end());
  }
  RETURN_IF_ERROR(tensors.CheckAllTaken());
  model.SetBuffers(buffers);
  return parameters;
}

}  // namespace thinwire
