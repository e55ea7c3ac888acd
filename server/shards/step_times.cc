#include "server/shards/step_times.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/median.h"

namespace thinwire {

void StepTimes::Record(const Event& event, const Effects& effects, absl::Time now) {
  if (const auto* push = std::get_if<PushEvent>(&event)) Finish(*push, *effects.judgement, now);
  if (const auto* join = std::get_if<JoinEvent>(&event)) workers_[join->worker.value] = {};
  if (const auto* leave = std::get_if<LeaveEvent>(&event)) workers_[leave->worker.value] = {};
  if (const auto* expire = std::get_if<ExpireEvent>(&event)) workers_[expire->worker.value] = {};
  for (const ReadAnswer& answer : effects.answers) {
    workers_[answer.worker.value].begun = BegunStep{answer.step, now};
  }
}

void StepTimes::Finish(const PushEvent& push, const Judgement& judgement, absl::Time now) {
  const bool finishes = judgement.verdict == Verdict::kAccept ||
                        judgement.verdict == Verdict::kLate ||
                        judgement.verdict == Verdict::kRefused;
  Worker& worker = workers_[push.worker.value];
  if (!finishes || judgement.again || !worker.begun.has_value()) return;
  if (worker.begun->step != push.step) return;
  worker.steps.push_back(
      {.seconds = absl::ToDoubleSeconds(now - worker.begun->time), .examples = push.examples});
  if (worker.steps.size() > kWindow) worker.steps.pop_front();
  if (push.examples > 0) worker.examples = push.examples;
  worker.begun.reset();
}

StepSeconds StepTimes::Of(uint32_t workers) const {
  StepSeconds times;
  for (uint32_t w = 0; w < workers; ++w) {
    std::vector<double>& seconds = times.emplace_back();
    for (const FinishedStep& step : workers_[w].steps) seconds.push_back(step.seconds);
  }
  return times;
}

std::optional<double> StepTimes::SecondsPerExample(WorkerId worker, size_t least,
                                                   size_t most) const {
  const std::deque<FinishedStep>& steps = workers_[worker.value].steps;
  std::vector<double> times;
  for (auto step = steps.rbegin(); step != steps.rend() && times.size() < most; ++step) {
    if (step->examples > 0) times.push_back(step->seconds / step->examples);
  }
  if (times.empty() || times.size() < least) return std::nullopt;
  return Median(std::move(times));
}

double StepTimes::ExamplesPerPush(uint32_t workers) const {
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t w = 0; w < workers; ++w) {
    sum += workers_[w].examples;
    count += workers_[w].examples > 0 ? 1 : 0;
  }
  return sum / std::max(count, 1u);
}

}  // namespace thinwire
