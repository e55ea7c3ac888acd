#include "server/protocols/checkpoints/save_requests.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

void SaveRequests::Add(std::optional<Step> step, absl::Time now, absl::Duration limit,
                       const HostedModel& model, Done done) {
  if (step.has_value() && std::ranges::count(checkpointer_.steps(), *step) > 0) {
    return done(SavedSteps{*step, *step});
  }
  if (!checkpointer_.can_save(model)) return done(SavedSteps{});
  requests_.push_back(
      {.step = step, .deadline = now + limit, .limit = limit, .done = std::move(done)});
  Start(model);
}

void SaveRequests::Start(const HostedModel& model) {
  uint64_t started = 0;  // the checkpoint that this call has started, with all events so far
  for (Request& request : requests_) {
    if (request.number != 0) continue;
    if (checkpointer_.Start(model, request.step.value_or(Step{}))) {
      started = checkpointer_.started_count();
      request.number = started;
      continue;
    }
    if (!request.step.has_value()) {
      request.number = started;
      continue;
    }
    if (!checkpointer_.in_progress() || checkpointer_.newest_from() < request.step) continue;
    // The lead names a step below one that it has announced only if no worker is live.
    if (checkpointer_.newest_from() > request.step) checkpointer_.SaveEarly(model);
    request.number = checkpointer_.started_count();
  }
}

void SaveRequests::Tick(absl::Time now, const HostedModel& model) {
  Start(model);
  const auto late = Take([now](const Request& request) { return now >= request.deadline; });
  for (const Request& request : late) {
    request.done(absl::DeadlineExceededError(absl::StrCat("no checkpoint within ",
                                                          absl::FormatDuration(request.limit), ": ",
                                                          ReasonOf(request, model))));
  }
}

std::string SaveRequests::ReasonOf(const Request& request, const HostedModel& model) const {
  if (request.number == 0) return "an earlier checkpoint is not complete";
  if (!checkpointer_.saving()) return "it is not written yet";
  if (request.step.has_value() && model.frontier() < *request.step) {
    return absl::StrCat("the shards have not reached step ", request.step->value, " (they are at ",
                        model.frontier().value, ")");
  }
  return "a gradient still waits for its update";
}

void SaveRequests::Ended(uint64_t number, const absl::StatusOr<SavedSteps>& result) {
  const auto ended = Take([number](const Request& request) { return request.number == number; });
  for (const Request& request : ended) {
    if (!result.ok()) {
      request.done(absl::ResourceExhaustedError(result.status().message()));
      continue;
    }
    if (!request.step.has_value() || !result->least.has_value() ||
        (result->least == request.step && result->largest == request.step)) {
      request.done(result);
      continue;
    }
    request.done(absl::AbortedError(absl::StrCat("the shards were saved at another step (expected ",
                                                 request.step->value, ", got ",
                                                 result->least->value, "); ask again")));
  }
}

void SaveRequests::Cancel(const absl::Status& status) {
  for (const Request& request : Take([](const Request&) { return true; })) request.done(status);
}

std::vector<SaveRequests::Request> SaveRequests::Take(
    const std::function<bool(const Request&)>& ends) {
  std::vector<Request> taken;
  const auto first = std::stable_partition(requests_.begin(), requests_.end(),
                                           [&](const Request& request) { return !ends(request); });
  std::move(first, requests_.end(), std::back_inserter(taken));
  requests_.erase(first, requests_.end());
  return taken;
}

}  // namespace thinwire
