#include "server/protocols/membership/join_queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

// The most tensors that an error names.
constexpr size_t kMostNamed = 4;

absl::Status Abandoned() { return absl::CancelledError("the caller stopped waiting"); }

// Checks that the processes of a worker own every tensor once.
absl::Status CheckOwners(std::span<const JoinCall> calls) {
  const JoinRequest& model = calls.front().request;
  std::vector<std::vector<uint32_t>> owners(static_cast<size_t>(model.tensors_size()));
  for (const JoinCall& call : calls) {
    for (const uint32_t tensor : call.request.owned_tensors()) {
      owners[tensor].push_back(call.request.member());
    }
  }
  std::vector<std::string> wrong;
  for (size_t t = 0; t < owners.size(); ++t) {
    if (owners[t].size() == 1) continue;
    wrong.push_back(absl::StrCat(
        Quoted(model.tensors(static_cast<int>(t)).name()),
        owners[t].empty() ? " of none"
                          : absl::StrCat(" of members ", absl::StrJoin(owners[t], " and "))));
  }
  if (wrong.empty()) return absl::OkStatus();
  const size_t more = wrong.size() > kMostNamed ? wrong.size() - kMostNamed : 0;
  wrong.resize(std::min(wrong.size(), kMostNamed));
  return absl::InvalidArgumentError(absl::StrCat(
      "worker ", model.worker(),
      ": owned_tensors: expected each tensor to be owned by one member, got ",
      absl::StrJoin(wrong, ", "), more > 0 ? absl::StrCat(", and ", more, " more") : ""));
}

}  // namespace

void JoinQueue::Add(JoinCall call) {
  call.arrival = clock_.Now();
  if (state_.membership.member_count() > 1) {
    const auto waits = [&call](const JoinCall& other) {
      return other.worker() == call.worker() && !other.abandoned() &&
             other.request.member() == call.request.member();
    };
    if (std::ranges::any_of(waiting_, waits)) {
      return call.done(absl::AlreadyExistsError(
          absl::StrCat("worker ", call.worker().value, " member ", call.request.member(),
                       ": is in use; another process waits for the other members")));
    }
  }
  waiting_.push_back(std::move(call));
  Answer();
}

void JoinQueue::Answer() {
  std::erase_if(waiting_, [this](const JoinCall& call) {
    if (!call.abandoned()) return state_.membership.member_count() == 1 && TryAnswer({call});
    call.done(Abandoned());
    return true;
  });
  if (state_.membership.member_count() == 1) return;
  std::set<WorkerId> workers;
  for (const JoinCall& call : waiting_) workers.insert(call.worker());
  for (const WorkerId worker : workers) AnswerMembers(worker);
}

void JoinQueue::AnswerMembers(WorkerId worker) {
  const auto of_worker = [worker](const JoinCall& call) { return call.worker() == worker; };
  if (std::ranges::count_if(waiting_, of_worker) < state_.membership.member_count()) return;
  Calls calls;
  std::ranges::copy_if(waiting_, std::back_inserter(calls), of_worker);
  const absl::Status owned = CheckOwners(calls);
  if (!owned.ok()) {
    for (const JoinCall& call : calls) call.done(owned);
  } else if (!TryAnswer(calls)) {
    return;
  }
  std::erase_if(waiting_, of_worker);
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

bool JoinQueue::TryAnswer(const Calls& calls) {
  // Whether training waits for all workers is not known yet.
  if (state_.membership.awaits_return()) return false;
  const WorkerId worker = calls.front().worker();
  const absl::Time first = std::ranges::min(calls, {}, &JoinCall::arrival).arrival;
  const Member before = state_.membership.of(worker);
  const auto assigned = state_.membership.Assign(worker, first, clock_.Now());
  if (!assigned.ok()) {
    for (const JoinCall& call : calls) call.done(assigned.status());
  } else if (assigned->has_value()) {
    Announce(calls, **assigned, before);
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

void JoinQueue::Announce(const Calls& calls, Incarnation incarnation, const Member& before) {
  const WorkerId worker = calls.front().worker();
  const auto announced = [this, worker, calls, incarnation, before](absl::Status admitted) {
    if (std::ranges::any_of(calls, [](const JoinCall& call) { return call.abandoned(); })) {
      admitted = Abandoned();
    }
    if (admitted.ok()) {
      for (const JoinCall& call : calls) {
        state_.membership.Renew(worker, incarnation, clock_.Now(), call.request.member());
      }
      // Now and not before: the other workers have gone on meanwhile.
      if (before.incarnation != Incarnation{}) DealAnew(worker, before.expired);
      for (const JoinCall& call : calls) admit_(call, incarnation);
      return;
    }
    // Frees the number. Fails if a newer process has taken it already.
    state_.membership.Leave(worker, incarnation, {.failed = true}).IgnoreError();
    for (const JoinCall& call : calls) call.done(admitted);
  };
  admission_.Announce(worker, incarnation, clock_.Now(), announced);
}

}  // namespace thinwire
