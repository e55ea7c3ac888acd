// ConfigText: a text-format configuration, read so that a person finds every mistake at once and
// its place.
//
//   job.textproto:3:3: field "learning_rat" is unknown; did you mean "learning_rate"?
//   job.textproto:5:14: field "workers": want a whole number from 0 to 4294967295, got four
//   job.textproto:9:3: field "density": want a number above 0 and at most 1, got 2
//
// Lines and columns count from 1. The text comes from anywhere; no text crashes the reader.
#ifndef THINWIRE_PROTO_CONFIG_TEXT_H_
#define THINWIRE_PROTO_CONFIG_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/config.pb.h"
#include "proto/config_check.h"

namespace thinwire {

// What was read, and where each field was set, so that a check made later, with flags on top, can
// still say so.
template <typename Config>
struct ConfigText {
  Config config;
  FieldPlaces places;
};

// Config is ServerConfig, WorkerConfig or TrainConfig. FILE is how the text is called in errors.

// The fields alone. Errors: InvalidArgument with a line for each mistake; the fields that could be
// read are not checked.
template <typename Config>
absl::StatusOr<ConfigText<Config>> ParseConfigText(std::string_view text, std::string_view file);

// Fields and check (config_check.h). Errors: InvalidArgument with a line for each mistake of either
// kind.
template <typename Config>
absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view file);

// The same of a file. Errors: also NotFound or PermissionDenied if the file cannot be read.
template <typename Config>
absl::StatusOr<ConfigText<Config>> ReadConfigText(const std::string& path);
template <typename Config>
absl::StatusOr<Config> ReadConfig(const std::string& path);

// A whole file's bytes, with the errors of ReadConfig.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_CONFIG_TEXT_H_
