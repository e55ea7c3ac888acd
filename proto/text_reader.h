// TextReader: reads any message from text format and notes every mistake with its place, where
// protobuf's own parser stops at the first.
//
// An unknown field is skipped. After any other mistake the field it stands in is blanked out and
// the text read again, so each round finds one more; what cannot be blanked out ends the reading.
#ifndef THINWIRE_PROTO_TEXT_READER_H_
#define THINWIRE_PROTO_TEXT_READER_H_

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

struct TextReading {
  // One line each, in the text's order: "FILE:LINE:COLUMN: ...".
  std::vector<std::string> problems;
  // Of every field that was set, by its name, an element of a repeated one as "name[i]":
  // "FILE:LINE:COLUMN".
  std::map<std::string, std::string> places;
};

// Fills MESSAGE with the fields that could be read. No two fields in and below MESSAGE share a
// name.
TextReading ReadText(std::string_view text, std::string_view file,
                     google::protobuf::Message& message);

// What a field's value must look like: "a whole number from 0 to 4294967295", "true or false".
std::string WantedValue(const google::protobuf::FieldDescriptor& field);

// The fields in and below TYPE, messages included, in the order of their declaration.
std::vector<const google::protobuf::FieldDescriptor*> AllFields(
    const google::protobuf::Descriptor& type);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_TEXT_READER_H_
