#include "server/core/judge.h"

#include <algorithm>
#include <limits>

#include "common/codec/codec.h"

namespace thinwire {

std::optional<Verdict> JudgeSender(const Standing& standing, Generation generation,
                                   Incarnation incarnation) {
  const WorkerProgress& worker = standing.worker;
  const bool known = worker.incarnation.value != 0 && incarnation <= worker.incarnation;
  if (generation != standing.generation || !known) return Verdict::kStale;
  if (incarnation < worker.incarnation || !worker.joined()) return Verdict::kFenced;
  return std::nullopt;
}

float LargestAccepted(uint32_t examples, uint32_t most_folded) {
  // Half of what a float holds: the rest is for what rounding adds.
  constexpr double kLargestSum = std::numeric_limits<float>::max() / 2;
  return static_cast<float>(kLargestSum / examples / most_folded);
}

Ruling Judge(const Standing& standing, const PushEvent& push) {
  const WorkerProgress& worker = standing.worker;
  if (const auto verdict = JudgeSender(standing, push.generation, push.incarnation)) {
    return {*verdict};
  }
  if (worker.last_push.has_value()) {
    const JudgedPush& last = *worker.last_push;
    if (push.step == last.step) return {last.verdict, true};
    if (push.step < last.step) return {Verdict::kRepeat};
  }
  if (push.step < std::max(worker.next, standing.frontier)) return {Verdict::kLate};
  if (!standing.open || push.step > StepsAfter(standing.frontier, standing.slack)) {
    return {Verdict::kEarly};
  }
  if (push.examples == 0) return {Verdict::kAccept};
  const float largest = LargestAccepted(push.examples, standing.most_folded);
  const bool within = PayloadIsWithin(push.payload, largest);
  return {within ? Verdict::kAccept : Verdict::kRefused};
}

}  // namespace thinwire
