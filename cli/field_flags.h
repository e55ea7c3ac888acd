// FieldFlags: a flag for every field of a configuration, made by reflection, so that config.proto
// is the only list.
//
//   --learning_rate 0.01   --learning_rate=0.01   --ordered_fold   --ordered_fold false --decay_at
//   0.5 --decay_at 0.75
//
// A flag replaces what the file says; of a field that is given twice the last counts, and a
// repeated field takes all its flags instead of the file's values.
#ifndef THINWIRE_CLI_FIELD_FLAGS_H_
#define THINWIRE_CLI_FIELD_FLAGS_H_

#include <google/protobuf/message.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/field_docs.h"
#include "proto/config_check.h"

namespace thinwire {

// Not thread-safe.
class FieldFlags {
 public:
  // Adds a flag to APP for every field in and below TYPE; APP outlives the flags. No two of the
  // fields share a name.
  FieldFlags(const google::protobuf::Descriptor& type, const FieldDocs& docs, CLI::App& app);

  // After APP has parsed: puts the given values into MESSAGE, whose type is TYPE, and their places
  // ("--slack") into PLACES. Errors: InvalidArgument with a line for each value of a wrong type.
  absl::Status Apply(google::protobuf::Message& message, FieldPlaces& places) const;

 private:
  struct Flag {
    std::vector<const google::protobuf::FieldDescriptor*> path;  // from TYPE to the field
    const CLI::Option* option;
  };

  void Add(const google::protobuf::Descriptor& type, const FieldDocs& docs,
           std::vector<const google::protobuf::FieldDescriptor*> path, CLI::App& app);

  std::vector<Flag> flags_;
};

// What APP did not understand. Errors: InvalidArgument "--learning_rat: unknown; did you mean
// --learning_rate?".
absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace thinwire

#endif  // THINWIRE_CLI_FIELD_FLAGS_H_
