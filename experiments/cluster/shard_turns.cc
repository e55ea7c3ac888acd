#include "experiments/cluster/shard_turns.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

namespace thinwire::lab {

ShardTurns::ShardTurns(uint64_t staleness, uint32_t worker_count, std::optional<CodecId> pull,
                       Shard& shard)
    : staleness_(staleness), worker_count_(worker_count), pull_(pull), shard_(shard) {
  KeepNewest();
}

std::shared_ptr<const PublishedDelta> ShardTurns::NewestDelta() {
  const std::shared_ptr<const VersionLog> log = shard_.log();
  if (!past_.empty()) {
    const auto& last = past_.back().delta;
    if (last->version == log->newest()) return last;
    // A turn makes one update, and the shard publishes every update.
    if (const auto chain = log->Since(last->version)) return chain->front();
  }
  return shard_.Deltas(std::nullopt).front();
}

void ShardTurns::KeepNewest() {
  Past past;
  if (pull_.has_value()) {
    past.parameters = {shard_.version(), shard_.frontier(), shard_.Encoded(*pull_),
                       shard_.selected_list()};
  } else {
    past.delta = NewestDelta();
  }
  past_.push_back(std::move(past));
  const uint64_t kept = staleness_ + 1 + (pull_.has_value() ? 0 : worker_count_);
  if (past_.size() > kept) past_.pop_front();
}

std::vector<PushEvent> ShardTurns::Arrived(PushEvent push) {
  const uint64_t turn = TurnOf(push.worker, push.step);
  early_.emplace(turn, std::move(push));
  std::vector<PushEvent> ready;
  for (auto next = early_.begin(); next != early_.end() && next->first == next_arrival_;) {
    ready.push_back(std::move(next->second));
    next = early_.erase(next);
    ++next_arrival_;
  }
  return ready;
}

std::vector<ShardTurns::Answer> ShardTurns::Applied(const Event& event,
                                                    const std::vector<ReadAnswer>& released) {
  if (std::holds_alternative<PushEvent>(event)) {
    ++turn_count_;
    KeepNewest();
  }
  for (const ReadAnswer& read : released) {
    const uint64_t turn = TurnOf(read.worker, read.step);
    waiting_.emplace(turn - std::min(turn, staleness_), read);
  }
  std::vector<Answer> answers;
  while (!waiting_.empty() && waiting_.begin()->first <= turn_count_) {
    const auto& [turn_count, read] = *waiting_.begin();
    answers.push_back({read, SlotsAfter(turn_count, read.form.held)});
    waiting_.erase(waiting_.begin());
  }
  return answers;
}

std::shared_ptr<PublishedSlots> ShardTurns::SlotsAfter(uint64_t turn_count,
                                                       std::optional<Version> held) const {
  auto slots = std::make_shared<PublishedSlots>();
  const size_t last = past_.size() - 1 - (turn_count_ - turn_count);
  if (pull_.has_value()) {
    slots->Put(*pull_, past_[last].parameters);
    return slots;
  }
  constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  PublishedState state = {.frontier = shard_.frontier()};
  auto log = std::make_shared<VersionLog>(held.value_or(Version()), kNoLimit);
  for (size_t i = 0; i <= last; ++i) {
    const std::shared_ptr<const PublishedDelta>& delta = past_[i].delta;
    const bool is_known = state.full != nullptr || held.has_value();
    if (is_known && delta->version <= log->newest()) continue;
    if (delta->kind == PublishedDelta::Kind::kFull) {
      state.full = delta;
      log = std::make_shared<VersionLog>(delta->version, kNoLimit);
    } else {
      log->Append(*delta);
    }
  }
  state.log = std::move(log);
  slots->PutPublished(std::move(state));
  return slots;
}

}  // namespace thinwire::lab
