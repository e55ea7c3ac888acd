#include "worker/datasets/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "worker/datasets/read_file.h"

namespace thinwire {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are copied without conversion");

template <typename... Parts>
absl::Status Refuse(const std::string& name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", parts...));
}

// Returns the number of bytes of one value of the type `dtype`, or 0 if the type is unknown.
uint64_t ValueBytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  for (const auto& [type, bytes] : kTypes) {
    if (type == dtype) return bytes;
  }
  return 0;
}

// Parses the JSON header of a safetensors file. Returns nullopt if the header is not a JSON object
// or contains a duplicate key, which the JSON parser alone would accept.
std::optional<Json> ParseHeader(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  bool repeated = false;
  const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      repeated |= !keys.back().insert(parsed.get<std::string>()).second;
    }
    return true;
  };
  Json header = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (repeated || !header.is_object()) return std::nullopt;
  return header;
}

// Returns the JSON list stored under `key` in `entry`. Returns nullopt if there is no such list or
// if it contains anything but integers from 0 to 2^63 - 1.
std::optional<std::vector<int64_t>> Numbers(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : *found) {
    if (!number.is_number_unsigned()) return std::nullopt;
    const uint64_t value = number.get<uint64_t>();
    if (value > uint64_t{std::numeric_limits<int64_t>::max()}) return std::nullopt;
    numbers.push_back(static_cast<int64_t>(value));
  }
  return numbers;
}

// Returns the size of a tensor in bytes, or nullopt if the size does not fit into 64 bits.
std::optional<uint64_t> TensorBytes(uint64_t value_bytes, const std::vector<int64_t>& shape) {
  uint64_t bytes = value_bytes;
  for (int64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes))
      return std::nullopt;
  }
  return bytes;
}

absl::StatusOr<SafetensorsEntry> ParseEntry(const Json& json, std::span<const uint8_t> tensors,
                                            const std::string& name) {
  if (!json.is_object()) return Refuse(name, "not an object");
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) return Refuse(name, "no dtype");
  SafetensorsEntry entry;
  entry.dtype = dtype->get<std::string>();
  const uint64_t value_bytes = ValueBytes(entry.dtype);
  if (value_bytes == 0) return Refuse(name, "unknown dtype \"", entry.dtype, "\"");
  const auto shape = Numbers(json, "shape");
  if (!shape) return Refuse(name, "no valid shape (expected a list of non-negative integers)");
  entry.shape = *shape;
  const auto offsets = Numbers(json, "data_offsets");
  if (!offsets || offsets->size() != 2)
    return Refuse(name, "no valid data_offsets (expected two non-negative integers)");
  const auto begin = static_cast<uint64_t>((*offsets)[0]);
  const auto end = static_cast<uint64_t>((*offsets)[1]);
  if (begin > end || end > tensors.size()) {
    return Refuse(name, "data_offsets out of range (expected at most ", tensors.size(), ", got [",
                  begin, ", ", end, "])");
  }
  const auto expected = TensorBytes(value_bytes, entry.shape);
  if (expected != end - begin) {
    return Refuse(name, "wrong size of ", entry.dtype, " [", absl::StrJoin(entry.shape, ", "),
                  "] (expected ", expected ? absl::StrCat(*expected) : "more than 2^64",
                  " bytes, got ", end - begin, ")");
  }
  entry.bytes = tensors.subspan(begin, end - begin);
  return entry;
}

// Checks that the tensors in `index` cover the bytes after the file's header without gaps or
// overlaps.
absl::Status CheckCover(const SafetensorsIndex& index, std::span<const uint8_t> tensors,
                        const std::string& name) {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  for (const auto& [key, entry] : index) {
    const auto begin = static_cast<uint64_t>(entry.bytes.data() - tensors.data());
    runs.emplace_back(begin, begin + entry.bytes.size());
  }
  std::sort(runs.begin(), runs.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : runs) {
    if (begin != covered) {
      return Refuse(name, "gap or overlap between tensors (expected one at byte ", covered,
                    ", got ", begin, ")");
    }
    covered = end;
  }
  if (covered != tensors.size()) {
    return Refuse(name, "wrong length (expected ", covered, " bytes of tensors, got ",
                  tensors.size(), ")");
  }
  return absl::OkStatus();
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

uint64_t SafetensorsEntry::value_count() const { return bytes.size() / ValueBytes(dtype); }

absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const uint8_t> file,
                                                  const std::string& name) {
  if (file.size() < 8) {
    return Refuse(name, "file too short (expected 8 bytes of header length, got ", file.size(),
                  ")");
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  const uint64_t max = std::min<uint64_t>(kLargestSafetensorsHeader, file.size() - 8);
  if (header_bytes > max) {
    return Refuse(name, "header too long (expected at most ", max, " bytes, got ", header_bytes,
                  ")");
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  const std::optional<Json> header = ParseHeader(text);
  if (!header)
    return Refuse(name, "invalid header (expected a JSON object without duplicate keys)");
  const std::span<const uint8_t> tensors = file.subspan(8 + header_bytes);
  SafetensorsIndex index;
  for (const auto& [key, json] : header->items()) {
    if (key == "__metadata__") continue;
    ASSIGN_OR_RETURN(SafetensorsEntry entry,
                     ParseEntry(json, tensors, absl::StrCat(name, ": tensor \"", key, "\"")));
    index.emplace(key, std::move(entry));
  }
  RETURN_IF_ERROR(CheckCover(index, tensors, name));
  return index;
}

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
