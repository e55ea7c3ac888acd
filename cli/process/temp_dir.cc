#include "cli/process/temp_dir.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<TempDir>> TempDir::Make(const std::string& parent) {
  std::string path = parent + "/thinwire-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat(parent, ": cannot create a directory"));
  }
  return std::unique_ptr<TempDir>(new TempDir(path));
}

TempDir::~TempDir() {
  if (keep_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::Status TempDir::WriteFile(const std::string& name, const std::string& text) const {
  std::ofstream out(PathOf(name), std::ios::binary);
  out << text << std::flush;
  if (!out) return absl::ErrnoToStatus(errno, absl::StrCat(PathOf(name), ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace thinwire
