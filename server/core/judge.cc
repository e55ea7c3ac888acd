#include "server/core/judge.h"

#include <algorithm>

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
  const bool gives = push.examples != 0;
  if (gives && !PayloadIsFinite(push.payload, standing.value_count)) return {Verdict::kRefused};
  return {Verdict::kAccept};
}

}  // namespace thinwire
