// Reads a whole file into memory. For files of the user or of the same process, which are small;
// worker/datasets/read_file.h reads data sets.
#ifndef THINWIRE_COMMON_FILES_READ_FILE_H_
#define THINWIRE_COMMON_FILES_READ_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns the bytes of the file PATH. Errors: NotFound "PATH: cannot be read: REASON", also for a
// folder.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_READ_FILE_H_
