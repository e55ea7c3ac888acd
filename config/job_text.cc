#include "config/job_text.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "config/message_text.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

constexpr TextKind kKind = {.name = "a job file", .folder = "examples/"};

// Returns whether TEXT, which is no job file, is a file for `thinwire experiment run`.
bool IsExperiment(std::string_view text, std::string_view file) {
  Experiment experiment;
  return ParseMessageText(text, file, kKind, experiment).ok();
}

}  // namespace

absl::StatusOr<JobText> ParseJobText(std::string_view text, std::string_view file) {
  JobText result;
  const absl::StatusOr<PathPlaces> places = ParseMessageText(text, file, kKind, result.config);
  if (!places.ok() && IsExperiment(text, file)) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(file),
                     ": not a job file (expected fields of proto/job.proto, got an "
                     "experiment, which thinwire experiment run checks and runs)"));
  }
  RETURN_IF_ERROR(places.status());
  result.places = PlacesByName(*places);
  return result;
}

absl::StatusOr<JobText> ReadJobFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadMessageText(path, kKind));
  return ParseJobText(text, path);
}

}  // namespace thinwire
