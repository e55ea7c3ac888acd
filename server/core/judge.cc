#include "server/core/judge.h"

#include <algorithm>
#include <limits>

#include "common/codec/codec.h"
#include "server/core/staleness/drop.h"

namespace thinwire {

std::optional<Verdict> JudgeSender(const JudgeInput& input, Generation generation,
                                   Incarnation incarnation) {
  const WorkerRecord& worker = input.worker;
  const bool known = worker.incarnation.value != 0 && incarnation <= worker.incarnation;
  if (generation != input.generation || !known) return Verdict::kStale;
  if (incarnation < worker.incarnation || !worker.joined()) return Verdict::kFenced;
  return std::nullopt;
}

uint64_t StalenessOf(const PushEvent& push, Version version) {
  return push.computed_version < version ? version - push.computed_version : 0;
}

float LargestAccepted(uint32_t examples, uint32_t max_folded) {
  // A sum of gradients may reach half of the largest float; the other half leaves room for rounding
  // errors.
  constexpr double kLargestSum = std::numeric_limits<float>::max() / 2;
  return static_cast<float>(kLargestSum / examples / max_folded);
}

Decision Judge(const JudgeInput& input, const PushEvent& push) {
  const WorkerRecord& worker = input.worker;
  if (const auto verdict = JudgeSender(input, push.generation, push.incarnation)) {
    return {*verdict};
  }
  if (worker.last_push.has_value()) {
    const JudgedPush& last = *worker.last_push;
    if (const auto stored = last.VerdictOf(push.step)) return {*stored, true};
    if (push.step < last.step) return {Verdict::kRepeat};
  }
  if (push.step < std::max(worker.next, input.frontier)) return {Verdict::kLate};
  if (!input.open || push.step > StepsAfter(input.frontier, input.slack)) {
    return {Verdict::kEarly};
  }
  if (push.examples == 0) return {Verdict::kAccept};
  if (IsTooStale(input.staleness, StalenessOf(push, input.version))) return {Verdict::kRefused};
  const float largest = LargestAccepted(push.examples, input.max_folded);
  const bool within = PayloadIsWithin(push.payload, largest);
  return {within ? Verdict::kAccept : Verdict::kRefused};
}

}  // namespace thinwire
