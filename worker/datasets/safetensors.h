// safetensors: named tensors in one file, the simplest way to bring a data set of one's own.
//
//   8 bytes   length of the header, little-endian
//   header    JSON: {"x": {"dtype": "F32", "shape": [n, 1, 28, 28], "data_offsets": [0, end]}, "y":
//   ...} tensors   row-major, little-endian; data_offsets count from here
//
// The format has no checksum, so everything that the header claims is checked against what is
// there: the offsets must cover the bytes without hole or overlap and agree with type and shape,
// and no key may stand twice.
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

// A tensor of a file that is in memory.
struct SafetensorsEntry {
  std::string dtype;  // F32, I64, ...
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // into the file

  uint64_t value_count() const;
};

using SafetensorsIndex = std::map<std::string, SafetensorsEntry, std::less<>>;

// Takes FILE apart, which must outlive the index. NAME is how errors call it. Errors:
// InvalidArgument.
absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const uint8_t> file,
                                                  const std::string& name);

// A data set of PATH's tensors x (F32 [n, ...]) and y (I64, I32 or U8 [n], from 0); other tensors
// are left alone. class_count is the largest label plus one. Errors: NotFound, InvalidArgument.
absl::StatusOr<Dataset> LoadSafetensors(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_SAFETENSORS_H_
