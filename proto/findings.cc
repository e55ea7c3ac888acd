#include "proto/findings.h"

#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"

namespace thinwire {

void Findings::Add(const std::string& field, const std::string& text) {
  const std::string name = field.substr(0, field.find('['));
  auto place = places_.find(field);
  if (place == places_.end()) place = places_.find(name);
  const std::string where = place == places_.end() ? "" : absl::StrCat(place->second, ": ");
  problems_.push_back(absl::StrCat(where, "field \"", name, "\"", text));
}

void Findings::WantName(const std::string& field, const std::string& got,
                        std::span<const std::string_view> known) {
  for (std::string_view name : known) {
    if (name == got) return;
  }
  const std::string nearest = DidYouMean(got, known);
  Add(field,
      absl::StrCat(": want one of ",
                   absl::StrJoin(std::vector<std::string>(known.begin(), known.end()), ", "),
                   ", got \"", got, "\"",
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

void Findings::WantAtLeast(uint64_t least, const std::string& field, uint64_t got, uint64_t most) {
  Want(got >= least, field, absl::StrCat("at least ", least), got);
  Want(got <= most, field, absl::StrCat("at most ", most), got);
}

void Findings::WantPart(const std::string& field, double got) {
  Want(got >= 0 && got <= 1, field, "a number from 0 to 1", got);
}

void Findings::WantDensity(const std::string& field, double got) {
  Want(got > 0 && got <= 1, field, "a number above 0 and at most 1", got);
}

void Findings::WantSeconds(const std::string& field, double got) {
  Want(got > 0 && got <= 365 * 86400.0, field, "a number of seconds above 0, at most a year", got);
}

}  // namespace thinwire
