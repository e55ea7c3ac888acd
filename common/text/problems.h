// Problems is the result of a Validate() function: the list of all problems of a value.
//
//   density: out of range (expected above 0 and at most 1, got 2)
//   ^field   ^text
//
// A problem names its field as the job file does, so that the caller can look up the place where
// the field was set.
#ifndef THINWIRE_COMMON_TEXT_PROBLEMS_H_
#define THINWIRE_COMMON_TEXT_PROBLEMS_H_

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace thinwire {

struct Problem {
  std::string field;  // "density"; an element of a list: "decay_at[1]"
  std::string text;   // "out of range (expected above 0 and at most 1, got 2)"

  bool operator==(const Problem&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Problem& problem) {
    return out << problem.field << ": " << problem.text;
  }
};

// Not thread-safe.
class Problems {
 public:
  // Adds a problem unless the list already contains an equal problem.
  void Add(std::string_view field, std::string_view text);
  // Adds all problems of OTHER.
  void Append(const Problems& other);

  // Each Require function adds a problem with FIELD if the value GOT is out of the function's
  // range. A NaN is out of every range.
  template <typename Value>
  void Require(bool holds, std::string_view field, absl::string_view expected, const Value& got) {
    if (!holds) Add(field, absl::StrCat("out of range (expected ", expected, ", got ", got, ")"));
  }
  void RequireInteger(std::string_view field, uint64_t got, uint64_t least,
                      uint64_t most = std::numeric_limits<uint64_t>::max());
  // Range: 0 to 1.
  void RequireFraction(std::string_view field, double got);
  // Adds a problem unless GOT is above 0 and at most 1.
  void RequireDensity(std::string_view field, double got);
  // Adds a problem unless GOT is at least 0 and below 1.
  void RequireDecay(std::string_view field, double got);
  // Adds a problem unless GOT is between 0 and the largest finite float.
  void RequireFloat(std::string_view field, double got);
  // Adds a problem unless GOT is between the smallest normal float and the largest finite float.
  void RequirePositiveFloat(std::string_view field, double got);
  // Adds a problem unless GOT is above 0 and at most the seconds of one year.
  void RequireSeconds(std::string_view field, double got);

  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const& { return list_; }
  const std::vector<Problem>& list() const&& = delete;
  // Returns OK if there is no problem, otherwise InvalidArgument with one line per problem.
  absl::Status ToStatus() const;

  bool operator==(const Problems&) const = default;

 private:
  std::vector<Problem> list_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TEXT_PROBLEMS_H_
