#include "server/protocols/sums/round_sum.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, const RoundPart& part) {
  out << "round " << part.step;
  for (const auto& [number, sums] : part.sums) out << ", " << number << ": " << sums;
  return out;
}

absl::StatusOr<NumberedSums> SumsOf(const SumMessages& messages) {
  NumberedSums numbered;
  for (const SquareSum& message : messages) {
    const SquareSums sums = {.update = message.update(), .masters = message.masters()};
    if (!sums.valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sums: out of range (expected finite sums of at least 0, got ", sums.update,
                       ", ", sums.masters, ")"));
    }
    numbered[message.number()] = sums;
  }
  return numbered;
}

void SetSums(const NumberedSums& sums, SumMessages& messages) {
  for (const auto& [number, values] : sums) {
    SquareSum& message = *messages.Add();
    message.set_number(number);
    message.set_update(values.update);
    message.set_masters(values.masters);
  }
}

std::optional<RoundPart> RoundSum::Add(uint32_t member, const RoundPart& part) {
  std::optional<RoundPart>& own = parts_.at(member);
  if (!own.has_value() || part.step > own->step) own = part;
  const auto waits = [this](const auto& entry) {
    const std::optional<RoundPart>& newest = entry.second;
    return !newest.has_value() || (newest_.has_value() && newest->step <= newest_->step);
  };
  if (std::ranges::any_of(parts_, waits)) return std::nullopt;
  RoundPart sum = {.step = part.step, .sums = {}};
  for (const auto& [number, newest] : parts_) sum.step = std::min(sum.step, newest->step);
  for (const auto& [number, newest] : parts_) {
    if (newest->step != sum.step) continue;
    for (const auto& [i, sums] : newest->sums) sum.sums[i] += sums;
  }
  newest_ = sum;
  return newest_;
}

}  // namespace thinwire
