#include "server/edge/membership.h"

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

absl::Status Fenced(WorkerId worker, Incarnation got, Incarnation known) {
  return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                    got.value, " is fenced, ", known.value,
                                                    " has its number now"));
}

}  // namespace

void Membership::Begin(Member& member, Incarnation incarnation, absl::Time now) {
  member = {.incarnation = incarnation, .heard = now};
}

absl::StatusOr<std::optional<Incarnation>> Membership::Ask(WorkerId worker, absl::Time asked,
                                                           absl::Time now) {
  Member& member = members_[worker.value];
  if (!member.holds() || now - member.heard > lease_) {
    const Incarnation next = member.incarnation + 1;
    Begin(member, next, now);
    return next;
  }
  if (member.heard <= asked) return std::nullopt;
  return absl::AlreadyExistsError(absl::StrCat("worker ", worker.value,
                                               " is in use: its process was heard ",
                                               absl::FormatDuration(now - member.heard), " ago"));
}

absl::Status Membership::Adopt(WorkerId worker, Incarnation incarnation, absl::Time now) {
  Member& member = members_[worker.value];
  if (incarnation < member.incarnation) return Fenced(worker, incarnation, member.incarnation);
  if (incarnation == member.incarnation && member.left) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker.value, ": incarnation ", incarnation.value, " has left"));
  }
  Begin(member, incarnation, now);
  return absl::OkStatus();
}

Sign Membership::Heard(WorkerId worker, Incarnation incarnation, absl::Time now) {
  Member& member = members_[worker.value];
  if (incarnation < member.incarnation) return Sign::kFenced;
  if (incarnation > member.incarnation || incarnation.value == 0 || member.left) {
    return Sign::kUnknown;
  }
  const bool returned = member.expired;
  member.expired = false;
  member.heard = now;
  return returned ? Sign::kReturned : Sign::kHeld;
}

absl::Status Membership::Leave(WorkerId worker, Incarnation incarnation) {
  Member& member = members_[worker.value];
  if (incarnation < member.incarnation) return Fenced(worker, incarnation, member.incarnation);
  if (incarnation > member.incarnation || incarnation.value == 0) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                      incarnation.value, " has not joined here"));
  }
  member.left = true;
  return absl::OkStatus();
}

std::vector<Membership::Process> Membership::Expire(absl::Time now) {
  std::vector<Process> expired;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.holds() || now - member.heard <= lease_) continue;
    member.expired = true;
    expired.emplace_back(WorkerId{i}, member.incarnation);
  }
  return expired;
}

std::vector<WorkerId> Membership::Live() const {
  std::vector<WorkerId> live;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].holds()) live.push_back(WorkerId{i});
  }
  return live;
}

}  // namespace thinwire
