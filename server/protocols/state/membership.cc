#include "server/protocols/state/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

absl::Status Fenced(WorkerId worker, Incarnation got, Incarnation known) {
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", worker.value, ": a newer process has this number (expected incarnation ",
      known.value, ", got ", got.value, ")"));
}

}  // namespace

absl::Status Membership::CheckNumber(uint32_t worker, uint32_t member) const {
  if (worker >= worker_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: not a worker of this job (expected below ", worker_count(), ", got ",
                     worker, ")"));
  }
  if (member < member_count_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("member: not a member of a worker (expected below ", member_count_,
                   ", the value of members, got ", member, ")"));
}

void Membership::Begin(Member& member, Incarnation incarnation, absl::Time now) {
  member = {.assigned = incarnation,
            .incarnation = incarnation,
            .heard = now,
            .leases = std::vector<absl::Time>(member_count_, now + lease_)};
}

absl::StatusOr<std::optional<Incarnation>> Membership::Assign(WorkerId worker, absl::Time arrival,
                                                              absl::Time now) {
  Member& member = members_[worker.value];
  if (!member.live()) {
    const Incarnation next = std::max(member.assigned, earlier_) + 1;
    Begin(member, next, now);
    return next;
  }
  // Expire must report the old process before a new one replaces it: if the new one never joins the
  // shards, they would count the old one as live for ever.
  if (now > member.lease_end() || member.heard <= arrival) return std::nullopt;
  return absl::AlreadyExistsError(absl::StrCat("worker ", worker.value,
                                               ": is in use; its process sent a message ",
                                               absl::FormatDuration(now - member.heard), " ago"));
}

void Membership::Forget() {
  awaits_return_ = false;
  members_.assign(members_.size(), Member());
  evaluator_.reset();
  evaluator_finished_ = false;
}

void Membership::Announce(WorkerId worker, Incarnation incarnation) {
  Member& member = members_[worker.value];
  member.assigned = std::max(member.assigned, incarnation);
}

absl::Status Membership::Adopt(WorkerId worker, Incarnation incarnation, absl::Time now,
                               uint32_t member_number) {
  Member& member = members_[worker.value];
  if (incarnation < member.assigned) return Fenced(worker, incarnation, member.assigned);
  const Incarnation most = std::max(member.assigned, earlier_);
  if (incarnation > most) {
    return absl::NotFoundError(absl::StrCat(
        "worker ", worker.value, ": server 0 has not assigned this incarnation (expected at most ",
        most.value, ", got ", incarnation.value, ")"));
  }
  if (incarnation == member.incarnation && member.left) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker.value, ": incarnation ", incarnation.value, " has left"));
  }
  if (member_count_ > 1 && incarnation == member.incarnation && !member.expired) {
    member.leases[member_number] = now + lease_;  // the others keep theirs
    awaits_return_ = false;
    return absl::OkStatus();
  }
  const bool retired = member.retired && incarnation == member.incarnation;
  Begin(member, incarnation, now);
  member.retired = retired;
  awaits_return_ = false;
  return absl::OkStatus();
}

void Membership::Restore(WorkerId worker, Incarnation assigned, Incarnation incarnation, bool left,
                         absl::Time now) {
  Member& member = members_[worker.value];
  const bool retired = member.retired && incarnation == member.incarnation && !left;
  Begin(member, incarnation, now);
  member.assigned = assigned;
  member.left = left;
  member.retired = retired;
}

void Membership::RestoreRetired(WorkerId worker, Incarnation incarnation) {
  Member& member = members_[worker.value];
  member.retired = incarnation == member.incarnation && !member.left;
}

LeaseState Membership::Renew(WorkerId worker, Incarnation incarnation, absl::Time now,
                             uint32_t member_number) {
  Member& member = members_[worker.value];
  if (incarnation < member.incarnation) return LeaseState::kFenced;
  if (incarnation > member.incarnation || incarnation.value == 0 || member.left) {
    return LeaseState::kUnknown;
  }
  const bool returned = member.expired;
  member.expired = false;
  member.heard = now;
  absl::Time& lease = member.leases[member_number];
  if (lease != absl::InfiniteFuture()) lease = now + lease_;
  return returned ? LeaseState::kReturned : LeaseState::kRenewed;
}

absl::Status Membership::Leave(WorkerId worker, Incarnation incarnation, Departure departure,
                               uint32_t member_number) {
  Member& member = members_[worker.value];
  if (incarnation < member.incarnation) return Fenced(worker, incarnation, member.incarnation);
  // This server has gone back to a state before the process joined, so the process has left it.
  if (incarnation > member.incarnation && incarnation <= earlier_) return absl::OkStatus();
  if (incarnation > member.incarnation || incarnation.value == 0) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                      incarnation.value, " has not joined here"));
  }
  member.leases[member_number] = absl::InfiniteFuture();
  if (!departure.failed && member.lease_end() != absl::InfiniteFuture()) return absl::OkStatus();
  member.left = true;
  if (evaluator_ == worker) evaluator_finished_ = departure.finished;
  member.departure = std::move(departure);
  return absl::OkStatus();
}

std::optional<WorkerId> Membership::AppointEvaluator() {
  if (evaluator_.has_value() && (evaluator_finished_ || members_[evaluator_->value].live())) {
    return evaluator_;
  }
  const std::vector<WorkerId> live = Live();
  evaluator_ = live.empty() ? std::nullopt : std::optional(live.front());
  evaluator_finished_ = false;
  return evaluator_;
}

absl::Status Membership::Retire(WorkerId worker) {
  Member& member = members_[worker.value];
  if (!member.live()) {
    const char* state = member.incarnation.value == 0 ? "that never joined"
                        : member.left                 ? "that has left"
                                                      : "whose lease has expired";
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", worker.value, ": not live (expected a live worker, got one ", state, ")"));
  }
  member.retired = true;
  return absl::OkStatus();
}

std::vector<Membership::Process> Membership::Retired() const {
  std::vector<Process> retired;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.retired && !member.left) retired.emplace_back(WorkerId{i}, member.incarnation);
  }
  return retired;
}

void Membership::Stop(WorkerId worker, Incarnation incarnation, Step step) {
  Member& member = members_[worker.value];
  if (incarnation == member.incarnation) member.stops_before = step;
}

std::optional<Step> Membership::StopStep() const {
  std::optional<Step> largest;
  for (const Member& member : members_) {
    if (member.live() && !member.stops_before.has_value()) return std::nullopt;
    // Also of processes that have left: their pushes wait for those of the others.
    largest = std::max(largest, member.stops_before);
  }
  return largest;
}

void Membership::ExtendLeases(absl::Duration pause) {
  for (Member& member : members_) {
    for (absl::Time& lease : member.leases) lease += pause;
  }
}

std::vector<Membership::Process> Membership::ExpireAll() {
  awaits_return_ = false;
  return Expire(absl::InfiniteFuture());
}

std::vector<Membership::Process> Membership::Expire(absl::Time now) {
  std::vector<Process> expired;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.live() || now <= member.lease_end()) continue;
    member.expired = true;
    expired.emplace_back(WorkerId{i}, member.incarnation);
  }
  return expired;
}

std::vector<WorkerId> Membership::Live() const {
  std::vector<WorkerId> live;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].live()) live.push_back(WorkerId{i});
  }
  return live;
}

}  // namespace thinwire
