#include "common/text/problems.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using Float = std::numeric_limits<float>;

constexpr double kYear = 365 * 86400.0;

}  // namespace

void Problems::Add(std::string_view field, std::string_view text) {
  Problem problem = {std::string(field), std::string(text)};
  if (std::ranges::find(list_, problem) == list_.end()) list_.push_back(std::move(problem));
}

void Problems::Append(const Problems& other) {
  for (const Problem& problem : other.list_) Add(problem.field, problem.text);
}

void Problems::RequireInteger(std::string_view field, uint64_t got, uint64_t least, uint64_t most) {
  const bool bounded = most != std::numeric_limits<uint64_t>::max();
  Require(got >= least && got <= most, field,
          bounded ? absl::StrCat(least, " to ", most) : absl::StrCat("at least ", least), got);
}

void Problems::RequireFraction(std::string_view field, double got) {
  Require(got >= 0 && got <= 1, field, "0 to 1", got);
}

void Problems::RequireDensity(std::string_view field, double got) {
  Require(got > 0 && got <= 1, field, "above 0 and at most 1", got);
}

void Problems::RequireDecay(std::string_view field, double got) {
  Require(got >= 0 && got < 1, field, "at least 0 and below 1", got);
}

void Problems::RequireFloat(std::string_view field, double got) {
  Require(got >= 0 && got <= Float::max(), field, "0 to 3.4e38, the largest float", got);
}

void Problems::RequirePositiveFloat(std::string_view field, double got) {
  Require(got >= Float::min() && got <= Float::max(), field,
          "1.2e-38 to 3.4e38, the range of a positive float", got);
}

void Problems::RequireSeconds(std::string_view field, double got) {
  Require(got > 0 && got <= kYear, field, "above 0 and at most a year of seconds", got);
}

absl::Status Problems::ToStatus() const {
  if (list_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(list_, "\n", absl::StreamFormatter()));
}

}  // namespace thinwire
