#include "config/places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {

std::string NameOfPath(const std::string& path) {
  const size_t end = std::min(path.find("]."), path.rfind('.'));
  const size_t dot = end == std::string::npos ? end : path.rfind('.', end);
  return path.substr(dot + 1);
}

bool IsFilePlace(const std::string& place) { return place.find(':') != std::string::npos; }

std::string LineOf(const Problem& problem, const FieldPlaces& places) {
  const bool in_group = problem.field.find("].") != std::string::npos;
  const std::string name =
      in_group ? problem.field : problem.field.substr(0, problem.field.find('['));
  auto place = places.find(problem.field);
  if (place == places.end()) place = places.find(name);
  if (place == places.end()) return absl::StrCat(name, ": ", problem.text);
  // A place that is a flag or an environment variable contains the name of the field. A position in
  // a file does not, so the message adds the field's name.
  return absl::StrCat(place->second, ": ",
                      IsFilePlace(place->second) ? absl::StrCat(name, ": ") : "", problem.text);
}

absl::Status ErrorOf(const std::vector<Problem>& problems, const FieldPlaces& places) {
  return absl::InvalidArgumentError(absl::StrJoin(
      problems, "\n",
      [&](std::string* out, const Problem& problem) { out->append(LineOf(problem, places)); }));
}

}  // namespace thinwire
