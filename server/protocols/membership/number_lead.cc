#include "server/protocols/membership/number_lead.h"

#include <glog/logging.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {

absl::StatusOr<ClaimNumberReply> NumberLead::Claim(const ClaimNumberRequest& request,
                                                   absl::Time now) {
  if (state_.membership.member_count() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker: auto is not possible with members above 1 (expected a number, got members: ",
        state_.membership.member_count(), ")"));
  }
  Tick(now);
  std::optional<uint32_t> kept, fresh, lowest;
  for (const uint32_t number : request.kept()) {
    if (!kept.has_value() && IsFree(number)) kept = number;
  }
  for (uint32_t number = 0; number < state_.rule.target(); ++number) {
    if (!IsFree(number)) continue;
    if (!lowest.has_value()) lowest = number;
    const Member& member = state_.membership.of(WorkerId{number});
    if (!fresh.has_value() && member.assigned == Incarnation{}) fresh = number;
  }
  const std::optional<uint32_t> number = kept.has_value()    ? kept
                                         : fresh.has_value() ? fresh
                                                             : lowest;
  if (!number.has_value()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "worker: all numbers are in use (expected one that is free, got ", state_.rule.target(),
        " workers that are live or have just been started); an operator can raise the number of "
        "workers with thinwire scale"));
  }
  reserved_[*number] = now + start_timeout_;
  LOG(INFO) << "a new process gets the number of worker " << *number;
  ClaimNumberReply reply;
  reply.set_worker(*number);
  return reply;
}

void NumberLead::Tick(absl::Time now) {
  std::erase_if(reserved_, [now](const auto& entry) { return entry.second <= now; });
}

void NumberLead::FillIn(WorkerId worker, JoinReply& /*reply*/) { reserved_.erase(worker.value); }

bool NumberLead::IsFree(uint32_t number) const {
  return number < state_.rule.target() && !reserved_.contains(number) &&
         !state_.membership.of(WorkerId{number}).live();
}

}  // namespace thinwire
