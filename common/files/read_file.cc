#include "common/files/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  // Opening a folder succeeds; reading from it sets errno.
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (!in.is_open() || errno != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read",
                                            errno == 0 ? "" : absl::StrCat(": ", strerror(errno))));
  }
  return bytes.str();
}

}  // namespace thinwire
