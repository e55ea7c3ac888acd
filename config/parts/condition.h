// Condition is a row of the table that a part of the job file has in this folder: the jobs in which
// some settings have an effect. A part is a message of proto/job.proto, such as Compression. The
// same file converts the part to specs, so a new setting is a line in proto/job.proto, a field of a
// spec with its range (common/spec), and one or two lines in the file of its part.
#ifndef THINWIRE_CONFIG_PARTS_CONDITION_H_
#define THINWIRE_CONFIG_PARTS_CONDITION_H_

#include <string>
#include <string_view>
#include <vector>

#include "proto/job.pb.h"

namespace thinwire {

struct Condition {
  // The settings that have an effect only if holds() returns true.
  std::vector<std::string_view> fields;
  bool (*holds)(const JobConfig& config);
  std::string text;  // "mode: ssp or async", for messages
  // The settings that holds() reads. Error messages show the values of these settings.
  std::vector<std::string_view> deciders;
};

// Returns true if the push codec of CONFIG is chosen at run time.
inline bool ChoosesPush(const JobConfig& config) {
  return config.compression().push() >= Compression::Codec::auto_;
}

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_CONDITION_H_
