#include "client/encode/worker_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/encode/checked_file.h"
#include "common/base/status_macros.h"

namespace thinwire::client {
namespace {

constexpr absl::string_view kFolderPrefix = "worker-";
constexpr absl::string_view kPrefix = "residuals-";
constexpr size_t kKeptSteps = 3;
constexpr uint64_t kProcessMagic = 0x3130434f52505754;  // "TWPROC01"

absl::Status ErrorAt(const std::string& path, const std::string& problem,
                     const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": ", problem));
}

absl::Status TakenError(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": another process has joined under this number"));
}

}  // namespace

absl::StatusOr<WorkerFolder> WorkerFolder::Open(const std::string& state_dir, WorkerId worker,
                                                std::optional<uint32_t> member) {
  WorkerFolder folder(absl::StrCat(state_dir, "/", kFolderPrefix, worker.value,
                                   member.has_value() ? absl::StrCat("-member-", *member) : ""));
  std::error_code error;
  std::filesystem::create_directories(folder.path_, error);
  if (error) return ErrorAt(folder.path_, "cannot create the folder", error);
  return folder;
}

std::vector<uint32_t> WorkerFolder::NumbersIn(const std::string& state_dir) {
  std::vector<uint32_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(state_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    absl::string_view digits = name;
    uint32_t number = 0;
    if (absl::ConsumePrefix(&digits, kFolderPrefix) && absl::SimpleAtoi(digits, &number)) {
      numbers.push_back(number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

absl::StatusOr<std::optional<WorkerFolder::Process>> WorkerFolder::ReadProcess() const {
  absl::StatusOr<CheckedReader> file = CheckedReader::Open(ProcessPath());
  if (absl::IsNotFound(file.status())) return std::nullopt;
  RETURN_IF_ERROR(file.status());
  uint64_t magic = 0;
  Process process;
  RETURN_IF_ERROR(file->Get(magic));
  RETURN_IF_ERROR(file->Get(process.run.value));
  RETURN_IF_ERROR(file->Get(process.generation.value));
  RETURN_IF_ERROR(file->Get(process.incarnation.value));
  RETURN_IF_ERROR(file->Finish());
  if (magic == kProcessMagic) return process;
  return absl::DataLossError(absl::StrCat(ProcessPath(), ": damaged (expected magic number ",
                                          absl::Hex(kProcessMagic), ", got ", absl::Hex(magic),
                                          ")"));
}

absl::Status WorkerFolder::Take(const Process& process) {
  ASSIGN_OR_RETURN(const std::optional<Process> present, ReadProcess());
  if (present.has_value() && present->run == process.run && process < *present) {
    return TakenError(path_);
  }
  CheckedWriter file(ProcessPath());
  file.Put(kProcessMagic);
  file.Put(process.run.value);
  file.Put(process.generation.value);
  file.Put(process.incarnation.value);
  RETURN_IF_ERROR(file.Commit());
  process_ = process;
  return RemoveIf([](const File& other) { return other.name.ends_with(".tmp"); });
}

absl::Status WorkerFolder::CheckHeld() const {
  ASSIGN_OR_RETURN(const std::optional<Process> present, ReadProcess());
  return present == process_ ? absl::OkStatus() : TakenError(path_);
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
  return RemoveIf([step](const File& file) { return file.step > step; });
}

absl::Status WorkerFolder::RemoveOld() const {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, Steps());
  if (steps.size() <= kKeptSteps) return absl::OkStatus();
  const Step oldest_kept = steps[steps.size() - kKeptSteps];
  return RemoveIf([oldest_kept](const File& file) { return file.step < oldest_kept; });
}

absl::Status WorkerFolder::RemoveIf(absl::FunctionRef<bool(const File&)> condition) const {
  ASSIGN_OR_RETURN(const std::vector<File> files, Files());
  for (const File& file : files) {
    if (!condition(file)) continue;
    const std::string path = absl::StrCat(path_, "/", file.name);
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) return ErrorAt(path, "cannot remove", error);
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
