// Reads a whole file, whether gzip has packed it or not.
#ifndef THINWIRE_WORKER_DATASETS_READ_FILE_H_
#define THINWIRE_WORKER_DATASETS_READ_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

inline constexpr uint64_t kLargestFileBytes = uint64_t{4} << 30;

// The file's bytes, unpacked if they are gzip's. Errors: NotFound, InvalidArgument (packed wrongly,
// or more than MOST_BYTES unpacked), all with the path. Memory grows with what is read, not with
// what a header claims.
absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path,
                                              uint64_t most_bytes = kLargestFileBytes);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_READ_FILE_H_
