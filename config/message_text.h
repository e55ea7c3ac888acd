// Reads a message in protobuf's text format, such as a job file or an experiment file.
//
// The parser stops at the first mistake in the text and reports its line and column, both counted
// from 1:
//
//   job.textproto:3:3: learning_rat: unknown field (did you mean learning_rate?)
//   job.textproto:4:1: density: not a field here (it belongs in compression { })
//   job.textproto:5:3: ordered_fold: wrong value (expected true or false, got yes)
//
// The text is not trusted: no text crashes the parser.
#ifndef THINWIRE_CONFIG_MESSAGE_TEXT_H_
#define THINWIRE_CONFIG_MESSAGE_TEXT_H_

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "config/places.h"

namespace thinwire {

// The kind of a file, for messages.
struct TextKind {
  std::string_view name;    // "a job file"
  std::string_view folder;  // the folder with examples: "examples/"
};

// Maps the path of each given field to its place: "job.compression.density",
// "axis[0].setting[1].name". A repeated field has also the place of its first element.
using PathPlaces = std::map<std::string, std::string>;

// Parses TEXT into MESSAGE. FILE is the file name for messages. Errors: InvalidArgument with one
// line.
absl::StatusOr<PathPlaces> ParseMessageText(std::string_view text, std::string_view file,
                                            const TextKind& kind,
                                            google::protobuf::Message& message);

// Reads the file PATH. Errors: InvalidArgument if it is not a text or too large; the error of the
// operating system if it cannot be read.
absl::StatusOr<std::string> ReadMessageText(const std::string& path, const TextKind& kind);

// Returns the places of the fields below PATH, such as "axis[0].setting[1].job.", by their paths
// from there on.
PathPlaces PlacesBelow(const PathPlaces& places, std::string_view path);

// Returns PLACES by the names of the fields; a field of a repeated message has a name such as
// "parameter_group[0].match". REQUIRES: no two of the fields share a name.
FieldPlaces PlacesByName(const PathPlaces& places);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_MESSAGE_TEXT_H_
