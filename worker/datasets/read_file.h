// Reads a whole file, decompressing it if it is a gzip file.
#ifndef THINWIRE_WORKER_DATASETS_READ_FILE_H_
#define THINWIRE_WORKER_DATASETS_READ_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

inline constexpr uint64_t kLargestFileBytes = uint64_t{4} << 30;

// Returns the file's bytes, decompressed. Allocates memory only for bytes that were read, because
// the size in a header may be wrong. Errors, all with the path: NotFound; InvalidArgument if the
// compressed stream is damaged or the decompressed file has more than `max_bytes` bytes.
absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path,
                                              uint64_t max_bytes = kLargestFileBytes);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_READ_FILE_H_
