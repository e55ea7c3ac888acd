// safetensors is a file format for named tensors. It is the simplest format for a dataset of your
// own.
//
//   header length   8 bytes, little-endian
//   header          JSON: {"x": {"dtype": "F32", "shape": [n, 784], "data_offsets": [0, end]}, ...}
//   tensors         row-major, little-endian; data_offsets are relative to the first tensor byte
//
// The format has no checksum, so the reader checks the whole header: the tensors must cover the
// file without gaps or overlaps, their lengths must match their types and shapes, and no key may
// appear twice.
#ifndef THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
#define THINWIRE_WORKER_DATASETS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

inline constexpr uint64_t kLargestSafetensorsHeader = 100'000'000;

// A tensor of a safetensors file. The file's bytes are in memory.
struct SafetensorsEntry {
  std::string dtype;  // "F32", "I64", ...
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // points into the file's bytes

  uint64_t value_count() const;
};

using SafetensorsIndex = std::map<std::string, SafetensorsEntry, std::less<>>;

// Parses the bytes of a safetensors file, which must outlive the returned index. `name` is the
// file's name in error messages. Errors: InvalidArgument if the file is not valid.
absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const uint8_t> file,
                                                  const std::string& name);

// Loads a dataset from a file with the tensors x, the examples (F32 [n, ...]), and y, the labels
// (I64, I32 or U8 [n], from 0). Ignores other tensors. class_count is the largest label plus one.
// Errors: NotFound if the file is missing; InvalidArgument if the file is not valid.
absl::StatusOr<Dataset> LoadSafetensors(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
