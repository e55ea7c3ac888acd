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
#include "worker/datasets/read_file.h"

namespace thinwire {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are copied as they are");

template <typename... Parts>
absl::Status Refuse(const std::string& name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", parts...));
}

// Bytes of one value, 0 for a type the format does not have.
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

// The header as JSON, or nothing if it is none or a key stands twice, which JSON libraries silently
// allow.
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

// A list of whole numbers from 0 to the largest int64, or nothing.
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

// The bytes that a tensor takes, or nothing if they exceed what 63 bits count.
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
  if (!json.is_object()) return Refuse(name, "want an object");
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) return Refuse(name, "want a dtype");
  SafetensorsEntry entry;
  entry.dtype = dtype->get<std::string>();
  const uint64_t value_bytes = ValueBytes(entry.dtype);
  if (value_bytes == 0) return Refuse(name, "no dtype is called \"", entry.dtype, "\"");
  const auto shape = Numbers(json, "shape");
  if (!shape) return Refuse(name, "want a shape of whole numbers");
  entry.shape = *shape;
  const auto offsets = Numbers(json, "data_offsets");
  if (!offsets || offsets->size() != 2) return Refuse(name, "want two data_offsets");
  const auto begin = static_cast<uint64_t>((*offsets)[0]);
  const auto end = static_cast<uint64_t>((*offsets)[1]);
  if (begin > end || end > tensors.size()) {
    return Refuse(name, "want data_offsets within ", tensors.size(), " bytes, got [", begin, ", ",
                  end, ")");
  }
  const auto want = TensorBytes(value_bytes, entry.shape);
  if (want != end - begin) {
    return Refuse(name, entry.dtype, " [", absl::StrJoin(entry.shape, ", "), "]: want ",
                  want ? absl::StrCat(*want) : "more than 2^63", " bytes, got ", end - begin);
  }
  entry.bytes = tensors.subspan(begin, end - begin);
  return entry;
}

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
      return Refuse(name, "want tensors without hole or overlap, got one at ", begin, " after ",
                    covered, " bytes");
    }
    covered = end;
  }
  if (covered != tensors.size()) {
    return Refuse(name, "want ", covered, " bytes of tensors, got ", tensors.size());
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CopyLabels(std::span<const uint8_t> bytes, const std::string& path, Dataset& dataset) {
  constexpr int64_t kMostClasses = 65'536;
  for (size_t i = 0; i < dataset.labels.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    const auto label = static_cast<int64_t>(value);
    if (label < 0 || label >= kMostClasses) {
      return Refuse(path, "y[", i, "]: want 0 to ", kMostClasses - 1, ", got ", label);
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
  if (file.size() < 8) return Refuse(name, "want 8 bytes of header length, got ", file.size());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  const uint64_t most = std::min<uint64_t>(kLargestSafetensorsHeader, file.size() - 8);
  if (header_bytes > most) {
    return Refuse(name, "want a header of at most ", most, " bytes, got ", header_bytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  const std::optional<Json> header = ParseHeader(text);
  if (!header) return Refuse(name, "want a header of JSON with no key twice");
  const std::span<const uint8_t> tensors = file.subspan(8 + header_bytes);
  SafetensorsIndex index;
  for (const auto& [key, json] : header->items()) {
    if (key == "__metadata__") continue;
    absl::StatusOr<SafetensorsEntry> entry =
        ParseEntry(json, tensors, absl::StrCat(name, ": tensor \"", key, "\""));
    if (!entry.ok()) return entry.status();
    index.emplace(key, *std::move(entry));
  }
  const absl::Status status = CheckCover(index, tensors, name);
  if (!status.ok()) return status;
  return index;
}

absl::StatusOr<Dataset> LoadSafetensors(const std::string& path) {
  const absl::StatusOr<std::vector<uint8_t>> file = ReadFile(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<SafetensorsIndex> index = ParseSafetensors(*file, path);
  if (!index.ok()) return index.status();
  const auto x = index->find("x");
  const auto y = index->find("y");
  if (x == index->end() || y == index->end()) {
    std::vector<std::string> names;
    for (const auto& [key, entry] : *index) names.push_back(key);
    return Refuse(path, "want tensors x and y, got ", absl::StrJoin(names, ", "));
  }
  const SafetensorsEntry& examples = x->second;
  const SafetensorsEntry& labels = y->second;
  if (examples.dtype != "F32" || examples.shape.size() < 2 || examples.bytes.empty()) {
    return Refuse(path, "x: want F32 [n, ...] with a value, got ", examples.dtype, " [",
                  absl::StrJoin(examples.shape, ", "), "]");
  }
  const bool fits = labels.shape.size() == 1 && labels.shape[0] == examples.shape[0];
  if (!fits || (labels.dtype != "I64" && labels.dtype != "I32" && labels.dtype != "U8")) {
    return Refuse(path, "y: want I64, I32 or U8 [", examples.shape[0], "], got ", labels.dtype,
                  " [", absl::StrJoin(labels.shape, ", "), "]");
  }
  Dataset dataset;
  dataset.example_shape.assign(examples.shape.begin() + 1, examples.shape.end());
  dataset.labels.resize(labels.value_count());
  absl::Status status = labels.dtype == "I64"   ? CopyLabels<int64_t>(labels.bytes, path, dataset)
                        : labels.dtype == "I32" ? CopyLabels<int32_t>(labels.bytes, path, dataset)
                                                : CopyLabels<uint8_t>(labels.bytes, path, dataset);
  if (!status.ok()) return status;
  dataset.floats.resize(examples.value_count());
  std::memcpy(dataset.floats.data(), examples.bytes.data(), examples.bytes.size());
  return dataset;
}

}  // namespace thinwire
