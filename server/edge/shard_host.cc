#include "server/edge/shard_host.h"

#include <memory>

#include "server/edge/convert.h"

namespace thinwire {

Effects ShardHost::Apply(const Event& event, ServerStream* sender) {
  Effects effects = shard_.Apply(event);
  counters_.Count(effects);
  if (effects.judgement.has_value() && sender != nullptr) {
    sender->AddVerdict(VerdictEntryOf(id_, *effects.judgement));
  }
  for (const ReadAnswer& answer : effects.answers) {
    // If the worker has no stream, the answer is dropped, and the worker sends the read again on
    // its next stream.
    const auto stream = streams_.Find(answer.worker, answer.incarnation);
    if (stream == nullptr) continue;
    PublishedDeltas deltas = Publish(answer.form);
    stream->AddAnswer(id_, answer.step, answer.form, slots_, std::move(deltas));
  }
  return effects;
}

void ShardHost::SendWaitNotices() {
  for (const BlockedRead& read : shard_.BlockedReads()) {
    const auto stream = streams_.Find(read.worker, read.incarnation);
    if (stream != nullptr) stream->AddWaiting(WaitingEntryOf(id_, read));
  }
}

PublishedDeltas ShardHost::Publish(const ReadForm& form) {
  if (form.published) {
    slots_.PutLog(shard_.log(), shard_.frontier(), shard_.selected_list());
    return {shard_.frontier(), shard_.Deltas(form.held), shard_.selected_list()};
  }
  slots_.Put(form.codec, {shard_.version(), shard_.frontier(), shard_.Encoded(form.codec),
                          shard_.selected_list()});
  return {};
}

}  // namespace thinwire
