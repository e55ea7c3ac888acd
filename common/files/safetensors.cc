#include "common/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

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

std::string SafetensorsHeader(std::span<const SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const uint64_t begin = std::exchange(end, end + tensor.bytes);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append(-text.size() % 8, ' ');
  const uint64_t length = text.size();
  std::string start(sizeof(length), '\0');
  std::memcpy(start.data(), &length, sizeof(length));
  return start + text;
}

}  // namespace thinwire
