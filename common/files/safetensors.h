// safetensors is a file format for named tensors, for datasets, models and checkpoints.
//
//   header length   8 bytes, little-endian
//   header          JSON: {"x": {"dtype": "F32", "shape": [n, 784], "data_offsets": [0, end]}, ...}
//   tensors         row-major, little-endian; data_offsets are relative to the first tensor byte
//
// The format has no checksum, so the reader checks the whole header: the tensors must cover the
// file without gaps or overlaps, their lengths must match their types and shapes, and no key may
// appear twice.
#ifndef THINWIRE_COMMON_FILES_SAFETENSORS_H_
#define THINWIRE_COMMON_FILES_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

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

// A tensor to write.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // the size of all values
};

// Returns the beginning of a file with TENSORS: the header's length and the header, padded with
// spaces to a multiple of 8 bytes. The values of the tensors must follow in the order of TENSORS,
// without gaps. METADATA becomes the header's "__metadata__". REQUIRES: the names are distinct, and
// the sizes match the types and shapes.
std::string SafetensorsHeader(std::span<const SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_SAFETENSORS_H_
