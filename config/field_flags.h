// FieldFlags: a flag and an environment variable for every field of a job, made by reflection from
// proto/job.proto.
//
//   kind of field   flag                               environment variable
//   number, text    --learning_rate 0.01               THINWIRE_LEARNING_RATE=0.01
//                   --learning_rate=0.01
//   bool            --ordered_fold                     THINWIRE_ORDERED_FOLD=true
//                   --ordered_fold false
//   repeated        --decay_at 0.5 --decay_at 0.75     THINWIRE_DECAY_AT=0.5,0.75
//
// A flag replaces the environment variable, which replaces the value in the file. If a flag of a
// singular field is given twice, the last value counts. The flags of a repeated field replace all
// its values in the file.
#ifndef THINWIRE_CONFIG_FIELD_FLAGS_H_
#define THINWIRE_CONFIG_FIELD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "config/fields.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// "THINWIRE_LEARNING_RATE" for "learning_rate".
std::string EnvironmentName(std::string_view flag);

// Not thread-safe.
class FieldFlags {
 public:
  // Adds a flag to APP for each leaf field of JobConfig, or for those in ONLY. APP must outlive
  // this object.
  explicit FieldFlags(CLI::App& app, const std::vector<std::string_view>& only = {});

  // Puts the given values into CONFIG, and their places ("--slack", "THINWIRE_SLACK") into PLACES.
  // Removes fields of the file that lost their effect by that (DropReplacedFields in
  // config/applicability.h). Errors: InvalidArgument with one line for each value that its field
  // cannot hold. REQUIRES: APP has parsed the command line.
  absl::Status Apply(JobConfig& config, FieldPlaces& places) const;

 private:
  struct Flag {
    Field field;
    const CLI::Option* option;
  };

  const CLI::App& app_;
  std::vector<Flag> flags_;
};

// Checks that APP understood the whole command line. Errors: InvalidArgument "--learning_rat:
// unknown flag (did you mean
// --learning_rate?)".
absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_FIELD_FLAGS_H_
