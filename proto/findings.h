// Findings: what a check of a configuration found wrong, one line per problem, with the place and
// the field's name in front.
//
//   job.textproto:7:5: field "density": want a number above 0 and at most 1, got 2
//
// Not thread-safe.
#ifndef THINWIRE_PROTO_FINDINGS_H_
#define THINWIRE_PROTO_FINDINGS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire {

// Where fields were set: by the field's name, an element of a repeated one as "decay_at[1]". The
// place is whatever the person can look at: "job.textproto:7:5", "--decay_at".
using FieldPlaces = std::map<std::string, std::string>;

enum class CheckScope {
  kFields,  // each field by itself: sensible even if other fields could not be read
  kWhole,   // also what fields must be to one another
};

class Findings {
 public:
  // PLACES outlives them.
  Findings(const FieldPlaces& places, CheckScope scope) : places_(places), scope_(scope) {}

  bool whole() const { return scope_ == CheckScope::kWhole; }

  // TEXT follows the field's name.
  void Add(const std::string& field, const std::string& text);

  // Unless HOLDS, the field should have been WANTED and is GOT.
  template <typename Value>
  void Want(bool holds, const std::string& field, const std::string& wanted, const Value& got) {
    if (!holds) Add(field, absl::StrCat(": want ", wanted, ", got ", got));
  }
  void WantName(const std::string& field, const std::string& got,
                std::span<const std::string_view> known);
  void WantAtLeast(uint64_t least, const std::string& field, uint64_t got,
                   uint64_t most = std::numeric_limits<uint64_t>::max());
  // From 0 to 1.
  void WantPart(const std::string& field, double got);
  // Above 0 and at most 1.
  void WantDensity(const std::string& field, double got);
  // Beyond a year no duration is meant.
  void WantSeconds(const std::string& field, double got);

  std::vector<std::string> Take() { return std::move(problems_); }

 private:
  const FieldPlaces& places_;
  const CheckScope scope_;
  std::vector<std::string> problems_;
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_FINDINGS_H_
