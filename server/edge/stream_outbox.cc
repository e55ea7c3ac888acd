#include "server/edge/stream_outbox.h"

#include <utility>

namespace thinwire {
namespace {

// So that verdicts alone never exceed what a message may hold.
constexpr size_t kMostVerdicts = kMostEntries / 4;
constexpr size_t kMostAnswers = kMostEntries / 4;

}  // namespace

void StreamOutbox::AddWait(const WaitingEntry& wait) {
  if (!answers_.contains(wait.shard)) waits_[wait.shard] = wait;
}

void StreamOutbox::AddAnswer(ShardId shard, Step step, CodecId codec, const PublishedSlots& slots) {
  const auto old = answers_.find(shard);
  if (old != answers_.end() && old->second.step > step) return;
  answers_[shard] = {step, codec, &slots};
  waits_.erase(shard);
}

ServerFrame StreamOutbox::Next() {
  ServerFrame frame;
  while (!verdicts_.empty() && frame.verdicts.size() < kMostVerdicts) {
    frame.verdicts.push_back(verdicts_.front());
    verdicts_.pop_front();
  }
  // A verdict that has to wait goes before its step's parameters.
  if (verdicts_.empty()) TakeAnswers(frame);
  while (!waits_.empty() && frame.waits.size() < kMostAnswers) {
    frame.waits.push_back(std::move(waits_.begin()->second));
    waits_.erase(waits_.begin());
  }
  return frame;
}

void StreamOutbox::TakeAnswers(ServerFrame& frame) {
  size_t bytes = 0;
  while (!answers_.empty() && frame.parameters.size() < kMostAnswers) {
    const auto& [shard, answer] = *answers_.begin();
    Published newest = answer.slots->Get(answer.codec);
    if (bytes > 0 && bytes + newest.payload.size() > kMessagePayloadBytes) return;
    bytes += newest.payload.size();
    ParametersEntry& entry = frame.parameters.emplace_back();
    entry.shard = shard;
    entry.step = answer.step;
    entry.version = newest.version;
    entry.frontier = newest.frontier;
    entry.payload = std::move(newest.payload);
    answers_.erase(answers_.begin());
  }
}

}  // namespace thinwire
