#include "client/encode/worker_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace thinwire::client {
namespace {

constexpr absl::string_view kPrefix = "residuals-";
constexpr size_t kKeptSteps = 3;

absl::Status ErrorAt(const std::string& path, const std::string& problem,
                     const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": ", problem));
}

}  // namespace

absl::StatusOr<WorkerFolder> WorkerFolder::Open(const std::string& state_dir, WorkerId worker) {
  WorkerFolder folder(absl::StrCat(state_dir, "/worker-", worker.value));
  std::error_code error;
  std::filesystem::create_directories(folder.path_, error);
  if (error) return ErrorAt(folder.path_, "cannot create the folder", error);
  return folder;
}

std::string WorkerFolder::PathOf(Step step) const {
  return absl::StrCat(path_, "/", kPrefix, step.value);
}

absl::StatusOr<std::vector<WorkerFolder::File>> WorkerFolder::Files() const {
  std::vector<File> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(path_, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    const size_t dot = name.find('.');
    absl::string_view number = absl::string_view(name).substr(0, dot);
    File file = {.name = name, .has_residuals = dot == std::string::npos};
    if (!absl::ConsumePrefix(&number, kPrefix)) continue;
    if (absl::SimpleAtoi(number, &file.step.value)) files.push_back(std::move(file));
  }
  if (error) return ErrorAt(path_, "cannot read the folder", error);
  return files;
}

absl::StatusOr<std::vector<Step>> WorkerFolder::Steps() const {
  ASSIGN_OR_RETURN(const std::vector<File> files, Files());
  std::vector<Step> steps;
  for (const File& file : files) {
    if (file.has_residuals) steps.push_back(file.step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::Status WorkerFolder::RemoveAbove(Step step) const {
  return RemoveIf([step](Step other) { return other > step; });
}

absl::Status WorkerFolder::RemoveOld() const {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, Steps());
  if (steps.size() <= kKeptSteps) return absl::OkStatus();
  const Step oldest_kept = steps[steps.size() - kKeptSteps];
  return RemoveIf([oldest_kept](Step step) { return step < oldest_kept; });
}

absl::Status WorkerFolder::RemoveIf(absl::FunctionRef<bool(Step)> condition) const {
  ASSIGN_OR_RETURN(const std::vector<File> files, Files());
  for (const File& file : files) {
    if (!condition(file.step)) continue;
    const std::string path = absl::StrCat(path_, "/", file.name);
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) return ErrorAt(path, "cannot remove", error);
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
