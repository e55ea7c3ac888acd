#include "server/shards/stream/stream_outbox.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace thinwire {
namespace {

// The maximum numbers of verdicts and of answers in one message. They keep the number of all
// entries, including waiting notices, below kMostEntries.
constexpr size_t kMaxVerdicts = kMostEntries / 4;
constexpr size_t kMaxAnswers = kMostEntries / 4;

}  // namespace

void StreamOutbox::AddWaiting(const WaitingEntry& wait) {
  if (!answers_.contains(wait.shard)) waiting_[wait.shard] = wait;
}

void StreamOutbox::AddAnswer(ShardId shard, Step step, const ReadForm& form,
                             std::shared_ptr<const PublishedSlots> slots, StepsAhead ahead) {
  const auto old = answers_.find(shard);
  if (old != answers_.end() && old->second.step > step) return;
  answers_[shard] = {step, form, std::move(slots), ahead};
  waiting_.erase(shard);
}

ServerFrame StreamOutbox::Next() {
  ServerFrame frame;
  while (!verdicts_.empty() && frame.verdicts.size() < kMaxVerdicts) {
    frame.verdicts.push_back(verdicts_.front());
    verdicts_.pop_front();
  }
  // The verdicts of a step must be sent before the parameters of the next step. Answers are
  // therefore added to a message only if no verdict remains queued.
  if (verdicts_.empty()) MoveAnswersTo(frame);
  while (!waiting_.empty() && frame.waits.size() < kMaxAnswers) {
    frame.waits.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  return frame;
}

void StreamOutbox::MoveAnswersTo(ServerFrame& frame) {
  size_t bytes = 0;
  while (!answers_.empty() && frame.parameters.size() < kMaxAnswers) {
    const auto& [shard, answer] = *answers_.begin();
    std::vector<ParametersEntry> entries = EntriesOf(shard, answer);
    size_t more = 0;
    for (const ParametersEntry& entry : entries) more += entry.payload.size();
    if (bytes > 0 && bytes + more > kMessagePayloadBytes) return;
    bytes += more;
    std::ranges::move(entries, std::back_inserter(frame.parameters));
    answers_.erase(answers_.begin());
  }
}

std::vector<ParametersEntry> StreamOutbox::EntriesOf(ShardId shard, const Answer& answer) {
  const ParametersEntry common = {.shard = shard,
                                  .step = answer.step,
                                  .steps_ahead = answer.ahead.count,
                                  .holds_pushes = answer.ahead.holds_pushes};
  if (!answer.form.published) {
    EncodedParameters newest = answer.slots->Get(answer.form.codec);
    std::vector<ParametersEntry> entries = {common};
    entries[0].version = newest.version;
    entries[0].frontier = newest.frontier;
    entries[0].selected = std::move(newest.selected_list);
    entries[0].payload = std::move(newest.payload);
    return entries;
  }
  std::optional<Version> held = answer.form.held;
  const auto before = published_.find(shard);
  if (answer.form.follows && held.has_value() && before != published_.end()) {
    held = std::max(*held, before->second);
  }
  const PublishedDeltas deltas = answer.slots->Since(held);
  if (!deltas.chain.empty()) published_[shard] = deltas.chain.back()->version;
  std::vector<ParametersEntry> entries(deltas.chain.size(), common);
  for (size_t i = 0; i < entries.size(); ++i) {
    const PublishedDelta& delta = *deltas.chain[i];
    entries[i].version = delta.version;
    entries[i].base_version = delta.base;
    entries[i].kind = static_cast<uint32_t>(delta.kind);
    entries[i].frontier = deltas.frontier;
    entries[i].more = i + 1 < entries.size();
    entries[i].published_hash = delta.hash;
    entries[i].payload = delta.payload;
    if (!entries[i].more) entries[i].selected = deltas.selected_list;
  }
  return entries;
}

}  // namespace thinwire
