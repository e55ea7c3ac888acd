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
    Announce(call, **assigned, /*replaces=*/before.incarnation != Incarnation{});
  } else {
    return false;
  }
  return true;
}

void JoinQueue::DealAnew(WorkerId worker) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const Step next = model->next(worker);
  // By round, the other workers may have finished one step more.
  const uint64_t ahead_count = state_.rule.rule().fold == Fold::kRound ? 1 : 0;
  if (model->largest_next() > next + ahead_count) state_.dealer.Replace(worker, next);
}

void JoinQueue::Announce(const JoinCall& call, Incarnation incarnation, bool replaces) {
  admission_.Announce(call.worker(), incarnation, clock_.Now(),
                      [this, call, incarnation, replaces](absl::Status admitted) {
                        if (call.abandoned()) admitted = Abandoned();
                        if (admitted.ok()) {
                          state_.membership.Renew(call.worker(), incarnation, clock_.Now());
                          // Now and not before: the other workers have gone on meanwhile.
                          if (replaces) DealAnew(call.worker());
                          return admit_(call, incarnation);
                        }
                        // Frees the number. Fails if a newer process has taken it already.
                        state_.membership.Leave(call.worker(), incarnation).IgnoreError();
                        call.done(admitted);
                      });
}

}  // namespace thinwire
