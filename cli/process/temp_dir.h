// TempDir is a private directory that exists for the lifetime of the object.
#ifndef THINWIRE_CLI_PROCESS_TEMP_DIR_H_
#define THINWIRE_CLI_PROCESS_TEMP_DIR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Not thread-safe.
class TempDir {
 public:
  // Creates a directory, which only the current user can access, in the directory `parent`. Errors:
  // system errors.
  static absl::StatusOr<std::unique_ptr<TempDir>> Make(const std::string& parent);
  // Removes the directory and its contents unless Keep was called.
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  void Keep() { keep_ = true; }
  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  // Writes `text` to the file `name` in the directory. Errors: system errors, with the path.
  absl::Status WriteFile(const std::string& name, const std::string& text) const;

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  bool keep_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_TEMP_DIR_H_
