// FieldValue: one field of any message, from and to a word.
#ifndef THINWIRE_CLI_FIELD_VALUE_H_
#define THINWIRE_CLI_FIELD_VALUE_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Sets a field, or adds to a repeated one; a text needs no quotes. Errors: InvalidArgument "want a
// number, got x".
absl::Status SetField(google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field, const std::string& word);

// What the field is if nobody sets it; "" for a repeated field and for no text.
std::string DefaultText(const google::protobuf::FieldDescriptor& field);

// The message with every field below it said, those that have their defaults too: the configuration
// in force.
std::string EffectiveText(const google::protobuf::Message& message);
nlohmann::ordered_json EffectiveJson(const google::protobuf::Message& message);

}  // namespace thinwire

#endif  // THINWIRE_CLI_FIELD_VALUE_H_
