#include "config/job_text.h"

#include "common/status_macros.h"
#include "config/message_text.h"

namespace thinwire {
namespace {

constexpr TextKind kKind = {.name = "a job file", .folder = "examples/"};

}  // namespace

absl::StatusOr<JobText> ParseJobText(std::string_view text, std::string_view file) {
  JobText result;
  ASSIGN_OR_RETURN(const PathPlaces places, ParseMessageText(text, file, kKind, result.config));
  result.places = PlacesByName(places);
  return result;
}

absl::StatusOr<JobText> ReadJobFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadMessageText(path, kKind));
  return ParseJobText(text, path);
}

}  // namespace thinwire
