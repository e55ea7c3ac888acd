#include "server/edge/delivery.h"

#include <memory>
#include <utility>

#include "server/edge/convert.h"

namespace thinwire {

Effects Delivery::Apply(ShardHost& host, Shard& shard, const Event& event,
                        ServerStream* sender) const {
  Effects effects = shard.Apply(event);
  counters_.Count(effects);
  if (effects.judgement.has_value() && sender != nullptr) {
    sender->AddVerdict(VerdictEntryOf(host.id(), *effects.judgement));
  }
  for (const Answer& answer : effects.answers) {
    // Without a stream the answer is lost: the worker reads again on its next one.
    const auto stream = streams_.Find(answer.worker, answer.incarnation);
    if (stream == nullptr) continue;
    PublishedDeltas deltas = host.Publish(answer.form);
    stream->AddAnswer(host.id(), answer.step, answer.form, host.slots(), std::move(deltas));
  }
  return effects;
}

void Delivery::TellWaits(const ShardHost& host, const Shard& shard) const {
  for (const Wait& wait : shard.Waits()) {
    const auto stream = streams_.Find(wait.worker, wait.incarnation);
    if (stream != nullptr) stream->AddWait(WaitingEntryOf(host.id(), wait));
  }
}

}  // namespace thinwire
