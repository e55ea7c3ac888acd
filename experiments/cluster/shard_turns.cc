#include "experiments/cluster/shard_turns.h"

#include <limits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/core/publish/version_log.h"

namespace thinwire::lab {

ShardTurns::ShardTurns(uint64_t staleness, uint32_t worker_count, std::optional<CodecId> pull,
                       Shard& shard)
    : staleness_(staleness), worker_count_(worker_count), pull_(pull), shard_(shard) {
  if (!pull_.has_value()) first_ = shard_.Deltas(std::nullopt).front();
  KeepNewest();
}

void ShardTurns::KeepNewest() {
  Past past;
  if (pull_.has_value()) {
    past.parameters = {shard_.version(), shard_.frontier(), shard_.Encoded(*pull_),
                       shard_.selected_list()};
  } else {
    past.published = shard_.log()->newest();
  }
  past_.push_back(std::move(past));
  if (past_.size() > staleness_ + 1) past_.pop_front();
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

absl::StatusOr<std::vector<ShardTurns::Answer>> ShardTurns::Applied(
    const Event& event, const std::vector<ReadAnswer>& released) {
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
    const auto [wanted, read] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    const Past& past = past_[past_.size() - 1 - (turn_count_ - wanted)];
    ASSIGN_OR_RETURN(std::shared_ptr<PublishedSlots> slots, SlotsOf(read, past));
    answers.push_back({read, std::move(slots)});
  }
  return answers;
}

absl::StatusOr<std::shared_ptr<PublishedSlots>> ShardTurns::SlotsOf(const ReadAnswer& read,
                                                                    const Past& past) const {
  auto slots = std::make_shared<PublishedSlots>();
  if (pull_.has_value()) {
    slots->Put(*pull_, past.parameters);
    return slots;
  }
  const Version base = read.form.held.value_or(first_->version);
  const std::optional<DeltaChain> chain = shard_.log()->Since(base);
  if (!chain.has_value()) {
    return absl::UnavailableError(
        absl::StrCat("version_log_bytes: too small for the imposed staleness (version ", base.value,
                     " is not in the log)"));
  }
  auto log = std::make_shared<VersionLog>(base, std::numeric_limits<size_t>::max());
  for (const auto& delta : *chain) {
    if (delta->version <= past.published) log->Append(*delta);
  }
  slots->PutPublished({.log = std::move(log), .full = first_, .frontier = shard_.frontier()});
  return slots;
}

}  // namespace thinwire::lab
