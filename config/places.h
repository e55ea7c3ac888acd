// FieldPlaces maps each field of a job to the place where the field was set, for use in messages.
//
//   source of the value   place                 start of a message about it
//   a job file            job.textproto:7:5     job.textproto:7:5: density: ...
//   a flag                --density             --density: ...
//   the environment       THINWIRE_DENSITY      THINWIRE_DENSITY: ...
//   the default           none                  density: ...
#ifndef THINWIRE_CONFIG_PLACES_H_
#define THINWIRE_CONFIG_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/text/problems.h"

namespace thinwire {

// Maps the name of a field to its place. Elements of a repeated field also have keys, such as
// "decay_at[1]".
using FieldPlaces = std::map<std::string, std::string>;

// Returns the name in FieldPlaces of the field with PATH: "density" for "compression.density". A
// field of a repeated message keeps its path from that message on: "parameter_group[0].match".
std::string NameOfPath(const std::string& path);

// Returns true if PLACE is a position in a file.
bool IsFilePlace(const std::string& place);

// Returns the problem as one line that begins with the place of its field.
std::string LineOf(const Problem& problem, const FieldPlaces& places);
// Returns InvalidArgument with the lines of all PROBLEMS. REQUIRES: there is one.
absl::Status ErrorOf(const std::vector<Problem>& problems, const FieldPlaces& places);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PLACES_H_
