// FieldFlags: a flag and an environment variable for every field of a job, made by reflection from
// proto/job.proto.
//
//   --learning_rate 0.01             --learning_rate=0.01    THINWIRE_LEARNING_RATE=0.01
//   --ordered_fold                   --ordered_fold false    THINWIRE_ORDERED_FOLD=true
//   --decay_at 0.5 --decay_at 0.75                           THINWIRE_DECAY_AT=0.5,0.75
//
// A flag overrides the environment variable, which overrides the value in the job file. If a flag
// is given twice, the last value is used. A repeated field gets the values of all its flags, which
// replace the values in the file.
#ifndef THINWIRE_CONFIG_FIELD_FLAGS_H_
#define THINWIRE_CONFIG_FIELD_FLAGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "config/fields.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thinwire {

// Returns the name of the environment variable of a flag: "THINWIRE_LEARNING_RATE" for
// "learning_rate".
std::string EnvironmentName(std::string_view flag);

// Not thread-safe.
class FieldFlags {
 public:
  // Adds a flag to APP for each setting of the job file: each field of JobConfig or of a message in
  // it whose type is not a message. If ONLY is not empty, adds only the flags named there. APP must
  // outlive this object.
  explicit FieldFlags(CLI::App& app, const std::vector<std::string_view>& only = {});

  // Sets the fields of CONFIG to the values of flags and environment variables, and adds their
  // places ("--slack", "THINWIRE_SLACK") to PLACES. Then removes the fields of the job file that
  // these values have made ineffective (DropReplacedFields in config/applicability.h), and replaces
  // the recipe by its settings (config/recipes.h). Errors:
  // InvalidArgument with one line for each value that does not fit its field. REQUIRES: APP has
  // parsed the command line.
  absl::Status Apply(JobConfig& config, FieldPlaces& places) const;

 private:
  struct Flag {
    Field field;
    const CLI::Option* option;
  };

  const CLI::App& app_;
  std::vector<Flag> flags_;
};

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_FIELD_FLAGS_H_
