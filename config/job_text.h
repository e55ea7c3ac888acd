// Reads a job file (proto/job.proto in protobuf's text format).
//
// The parser stops at the first mistake in the text and reports its line and column, both counted
// from 1:
//
//   job.textproto:3:3: learning_rat: unknown field (did you mean learning_rate?)
//   job.textproto:4:1: density: not a field here (it belongs in compression { })
//   job.textproto:5:3: ordered_fold: wrong value (expected true or false, got yes)
//
// CheckJob of config/job.h checks the values later. The text is not trusted: no text crashes the
// parser.
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
