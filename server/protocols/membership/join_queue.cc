#include "server/protocols/membership/join_queue.h"

namespace thinwire {
namespace {

absl::Status Abandoned() { return absl::CancelledError("the caller stopped waiting"); }

}  // namespace

void JoinQueue::Add(JoinCall call) {
  call.arrival = clock_.Now();
  if (!TryAnswer(call)) waiting_.push_back(std::move(call));
}

void JoinQueue::Answer() {
  std::erase_if(waiting_, [this](const JoinCall& call) { return TryAnswer(call); });
}

void JoinQueue::Cancel(const absl::Status& status) {
  for (const JoinCall& call : waiting_) call.done(status);
  waiting_.clear();
}

std::vector<WorkerId> JoinQueue::Returning() const {
  std::vector<WorkerId> workers;
  for (const JoinCall& call : waiting_) {
    if (membership_.of(call.worker()).expired) workers.push_back(call.worker());
  }
  return workers;
}

bool JoinQueue::TryAnswer(const JoinCall& call) {
  if (call.abandoned()) {
    call.done(Abandoned());
    return true;
  }
  // Whether training waits for all workers is not known yet.
  if (membership_.awaits_return()) return false;
  const Member before = membership_.of(call.worker());
  const auto assigned = membership_.Assign(call.worker(), call.arrival, clock_.Now());
  if (!assigned.ok()) {
    call.done(assigned.status());
  } else if (assigned->has_value()) {
    if (before.incarnation != Incarnation{}) deals_.Replace(call.worker());
    Announce(call, **assigned);
  } else {
    return false;
  }
  return true;
}

void JoinQueue::Announce(const JoinCall& call, Incarnation incarnation) {
  admission_.Announce(call.worker(), incarnation, clock_.Now(),
                      [this, call, incarnation](absl::Status admitted) {
                        if (call.abandoned()) admitted = Abandoned();
                        if (admitted.ok()) {
                          membership_.Renew(call.worker(), incarnation, clock_.Now());
                          return admit_(call, incarnation);
                        }
                        // Frees the number. Fails if a newer process has taken it already.
                        membership_.Leave(call.worker(), incarnation).IgnoreError();
                        call.done(admitted);
                      });
}

}  // namespace thinwire
