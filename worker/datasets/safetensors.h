// safetensors is a file format for named tensors, and the simplest way to train on a data set of
// your own.
//
//   header length   8 bytes, little-endian
//   header          JSON: {"x": {"dtype": "F32", "shape": [n, 784], "data_offsets": [0, end]}, ...}
//   tensors         row-major, little-endian; data_offsets count from here
//
// The format has no checksum, so every claim of the header is checked: the offsets must cover the
// file without gaps or overlaps and match type and shape, and no key may appear twice.
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

// A tensor of a file in memory.
struct SafetensorsEntry {
  std::string dtype;  // F32, I64, ...
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // a part of the file

  uint64_t value_count() const;
};

using SafetensorsIndex = std::map<std::string, SafetensorsEntry, std::less<>>;

// Parses a file, which must outlive the index. `name` is the file's name in error messages. Errors:
// InvalidArgument.
absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const uint8_t> file,
                                                  const std::string& name);

// Loads a data set from the tensors x (F32 [n, ...]) and y (I64, I32 or U8 [n], classes from 0) of
// a file; other tensors are ignored. class_count is the largest label plus one. Errors: NotFound,
// InvalidArgument.
absl::StatusOr<Dataset> LoadSafetensors(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
