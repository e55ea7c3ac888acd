#include "server/protocols/membership/join_queue.h"

#include <cstdint>
#include <memory>

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

void JoinQueue::Stop(const absl::Status& status) {
  for (const JoinCall& call : waiting_) call.done(status);
  waiting_.clear();
}

std::vector<WorkerId> JoinQueue::Returning() const {
  std::vector<WorkerId> workers;
  for (const JoinCall& call : waiting_) {
    if (state_.membership.of(call.worker()).expired) workers.push_back(call.worker());
  }
  return workers;
}

bool JoinQueue::TryAnswer(const JoinCall& call) {
  if (call.abandoned()) {
    call.done(Abandoned());
    return true;
  }
  // Whether training waits for all workers is not known yet.
  if (state_.membership.awaits_return()) return false;
  const Member before = state_.membership.of(call.worker());
  const auto assigned = state_.membership.Assign(call.worker(), call.arrival, clock_.Now());
  if (!assigned.ok()) {
    call.done(assigned.status());
  } else if (assigned->has_value()) {
    Announce(call, **assigned, before);
  } else {
    return false;
  }
  return true;
}

void JoinQueue::DealAnew(WorkerId worker, bool expired) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const Step next = model->next(worker);
  // By round, the others wait for the lost process until its lease ends, and have finished at most
  // one step more. Afterwards they go on, also until the new process has joined the shards.
  const uint64_t ahead_count = state_.rule.rule().fold == Fold::kRound && !expired ? 1 : 0;
  if (model->largest_next() > next + ahead_count) state_.dealer.Replace(worker, next);
}

void JoinQueue::Announce(const JoinCall& call, Incarnation incarnation, const Member& before) {
  admission_.Announce(call.worker(), incarnation, clock_.Now(),
                      [this, call, incarnation, before](absl::Status admitted) {
                        if (call.abandoned()) admitted = Abandoned();
                        if (admitted.ok()) {
                          state_.membership.Renew(call.worker(), incarnation, clock_.Now());
                          // Now and not before: the other workers have gone on meanwhile.
                          if (before.incarnation != Incarnation{}) {
                            DealAnew(call.worker(), before.expired);
                          }
                          return admit_(call, incarnation);
                        }
                        // Frees the number. Fails if a newer process has taken it already.
                        state_.membership.Leave(call.worker(), incarnation).IgnoreError();
                        call.done(admitted);
                      });
}

}  // namespace thinwire
