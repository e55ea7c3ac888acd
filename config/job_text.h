// Reads a job file (proto/job.proto in protobuf's text format). message_text.h has the errors of a
// text; CheckJob of config/job.h checks the values later.
#ifndef THINWIRE_CONFIG_JOB_TEXT_H_
#define THINWIRE_CONFIG_JOB_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

struct JobText {
  JobConfig config;
  FieldPlaces places;
};

// Parses TEXT. FILE is the file name for messages. Errors: InvalidArgument with one line.
absl::StatusOr<JobText> ParseJobText(std::string_view text, std::string_view file);

// Reads and parses the file PATH. Errors: the errors of ParseJobText, and the error of the
// operating system if the file cannot be read.
absl::StatusOr<JobText> ReadJobFile(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_TEXT_H_
