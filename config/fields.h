// Provides access to the fields of a job file by reflection, so that proto/job.proto is the only
// list of settings.
//
// A leaf field is a field whose type is not a message, such as "learning_rate" in
// JobConfig.optimization. A setting is a leaf field that is in no repeated message. No two settings
// share a name, so a name identifies a setting.
#ifndef THINWIRE_CONFIG_FIELDS_H_
#define THINWIRE_CONFIG_FIELDS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/text/problems.h"
#include "config/places.h"

namespace thinwire {

// A leaf field, as the path from the outer message to it.
struct Field {
  std::vector<const google::protobuf::FieldDescriptor*> path;

  const google::protobuf::FieldDescriptor& descriptor() const { return *path.back(); }
  const std::string& name() const { return path.back()->name(); }
  // Returns the names on the path: "optimization.learning_rate".
  std::string DottedName() const;
};

// Returns all leaf fields of TYPE and of the messages in it, in the order of their declaration.
std::vector<Field> LeafFields(const google::protobuf::Descriptor& type);

// Returns the settings of TYPE: LeafFields() without the fields of repeated messages, such as
// parameter_group.
std::vector<Field> Settings(const google::protobuf::Descriptor& type);

// Returns true if MESSAGE contains a value for FIELD, even if the value equals the default.
bool IsGiven(const google::protobuf::Message& message, const Field& field);

// Returns the value of the field in text format, or its default: "topk", "0.01", "[0.5, 0.75]".
std::string ValueText(const google::protobuf::Message& message, const Field& field);

// Sets FIELD to the value that WORD, a text without quotes, stands for. If FIELD is repeated, adds
// the value instead. Errors: InvalidArgument "wrong value (expected true or false, got maybe)".
absl::Status SetFromWord(google::protobuf::Message& message, const Field& field,
                         const std::string& word);

// Removes all values of FIELD.
void Clear(google::protobuf::Message& message, const Field& field);

// Replaces the value of FIELD by WORDS, the elements of a repeated field or one word, which come
// from PLACE. Notes this in PLACES. Returns a line "--density: ..." for each word that is no value.
std::vector<std::string> ReplaceValue(google::protobuf::Message& message, const Field& field,
                                      std::span<const std::string> words, const std::string& place,
                                      FieldPlaces& places);

// Sets FIELD to its default if it is not set. A repeated field and a string without a default
// remain unset.
void SetToDefault(google::protobuf::Message& message, const Field& field);

// Returns a description of the field's values: "a whole number from 0 to 4294967295", "one of sync,
// backup, ssp, async".
std::string ExpectedValue(const google::protobuf::FieldDescriptor& field);

// Returns "wrong value (expected EXPECTED, got GOT)", with a suggestion if the field is an enum.
std::string WrongValueText(const google::protobuf::FieldDescriptor& field, std::string_view got);

// Returns the names of the values that an enum field takes, in the order of their declaration: of
// a codec, those of the field's codec_use (proto/job.proto).
std::vector<std::string_view> EnumNames(const google::protobuf::FieldDescriptor& field);

// Returns a problem for each enum value in MESSAGE that its field does not take. Names a field as
// FieldPlaces do. A message in text format may have such values, and one from another process.
Problems WrongValues(const google::protobuf::Message& message);

// Returns the default of a field that is not repeated; "" for a message and for a string without a
// default.
std::string DefaultText(const google::protobuf::FieldDescriptor& field);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_FIELDS_H_
