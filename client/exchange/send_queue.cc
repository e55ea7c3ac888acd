#include "client/exchange/send_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/exchange/status_report.h"

namespace thinwire::client {

SendQueue::SendQueue(std::vector<ShardId> shards, bool follows) : follows_(follows) {
  for (const ShardId shard : shards) {
    Slot slot;
    slot.shard = shard;
    slots_.push_back(std::move(slot));
  }
}

std::optional<Step> SendQueue::Slot::StepToAsk() const {
  if (asks) return asked;
  // A read for a step finishes the steps before it, so it follows their pushes.
  if (has_unsent_push()) {
    const Step step = pushes[sent_count].step;
    return may_push() || asked >= step ? std::nullopt : std::optional(step);
  }
  return asked < read ? read : std::nullopt;
}

const SendQueue::Slot* SendQueue::Find(ShardId shard) const {
  const auto it = std::lower_bound(slots_.begin(), slots_.end(), shard,
                                   [](const Slot& slot, ShardId s) { return slot.shard < s; });
  return it != slots_.end() && it->shard == shard ? &*it : nullptr;
}

SendQueue::Slot* SendQueue::Find(ShardId shard) {
  return const_cast<Slot*>(std::as_const(*this).Find(shard));
}

void SendQueue::Queue(Slot& slot) {
  if (slot.queued) return;
  slot.queued = true;
  unsent_.push_back(static_cast<size_t>(&slot - slots_.data()));
}

void SendQueue::Seed(ShardId shard) {
  Slot& slot = *Find(shard);
  if (slot.held.has_value() || std::exchange(slot.seed_queued, true)) return;
  unsent_seeds_.push_back(static_cast<size_t>(&slot - slots_.data()));
}

void SendQueue::Read(ShardId shard, Step step) {
  Slot& slot = *Find(shard);
  slot.read = step;
  slot.asked = step;
  slot.asks = true;
  Queue(slot);
}

void SendQueue::Push(PushEntry push) {
  Slot& slot = *Find(push.shard);
  slot.read = push.step + 1;
  unsent_bytes_ += push.payload.size();
  slot.pushes.push_back(std::move(push));
  if (slot.may_push() || slot.StepToAsk().has_value()) Queue(slot);
}

bool SendQueue::HasUnsentBefore(Step step) const {
  return std::ranges::any_of(slots_, [step](const Slot& slot) {
    return slot.has_unsent_push() && slot.pushes[slot.sent_count].step < step;
  });
}

bool SendQueue::FillMessage(const Replica& replica, std::optional<CodecId> pull,
                            WorkerFrame& frame) {
  size_t bytes = AddSeeds(replica, frame);
  bool any = !frame.seeds.empty();
  while (!unsent_.empty()) {
    Slot& slot = slots_[unsent_.front()];
    while (slot.may_push()) {
      const PushEntry& push = slot.pushes[slot.sent_count];
      // The first entry of a message may exceed the message's size limit, because the payload of
      // the largest shard alone exceeds this limit.
      if (any && bytes + push.payload.size() > kMessageBytes) return true;
      any = true;
      bytes += push.payload.size();
      unsent_bytes_ -= push.payload.size();
      RequestParameters(replica, pull, frame.pushes.emplace_back(push));
      if (slot.asked <= push.step + 1) {
        slot.asked = push.step + 1;
        slot.asks = false;
      }
      ++slot.sent_count;
    }
    if (const std::optional<Step> step = slot.StepToAsk()) {
      any = true;
      RequestParameters(replica, pull,
                        frame.reads.emplace_back(ReadEntry{.shard = slot.shard, .step = *step}));
      slot.asked = step;
      slot.asks = false;
    }
    unsent_.pop_front();
    slot.queued = false;
  }
  return any;
}

template <typename Entry>
void SendQueue::RequestParameters(const Replica& replica, std::optional<CodecId> pull,
                                  Entry& entry) const {
  entry.held_version = replica.held_version(entry.shard);
  entry.read_codec = replica.holds(entry.shard) ? kReadDeltas : kReadPublished;
  if (pull.has_value()) entry.read_codec = static_cast<uint32_t>(*pull);
  entry.follows = follows_ && entry.read_codec == kReadDeltas;
}

size_t SendQueue::AddSeeds(const Replica& replica, WorkerFrame& frame) {
  size_t bytes = 0;
  while (!unsent_seeds_.empty() && bytes < kMessageBytes) {
    const Slot& slot = slots_[unsent_seeds_.front()];
    unsent_seeds_.pop_front();
    if (slot.held.has_value()) continue;
    frame.seeds.push_back({.shard = slot.shard, .payload = replica.SeedPayload(slot.shard)});
    bytes += frame.seeds.back().payload.size();
  }
  return bytes;
}

std::optional<PushEntry> SendQueue::FinishPush(ShardId shard, Step step) {
  Slot* slot = Find(shard);
  if (slot == nullptr) return std::nullopt;
  const auto found = std::ranges::find(slot->pushes, step, &PushEntry::step);
  if (found == slot->pushes.end()) return std::nullopt;
  PushEntry push = std::move(*found);
  if (static_cast<size_t>(found - slot->pushes.begin()) < slot->sent_count) {
    --slot->sent_count;
  } else {
    unsent_bytes_ -= push.payload.size();
  }
  slot->pushes.erase(found);
  return push;
}

bool SendQueue::FinishRead(ShardId shard, Step step, Step last_push) {
  if (!AwaitsParameters(shard, step)) return false;
  Slot& slot = *Find(shard);
  slot.answered = std::max(slot.answered.value_or(step), step);
  slot.push_end = last_push + 1;
  if (slot.asked <= step) {
    slot.asked.reset();
    slot.asks = false;
  }
  if (slot.read <= step) slot.read.reset();
  if (slot.may_push()) Queue(slot);
  return true;
}

void SendQueue::HoldParameters(ShardId shard, Step step) { Find(shard)->held = step; }

void SendQueue::ReadAgain(ShardId shard) {
  Slot& slot = *Find(shard);
  slot.asks = slot.asked.has_value();
  if (!slot.asks) slot.read = std::max(slot.read, slot.answered);
  Queue(slot);
}

bool SendQueue::AwaitsParameters(ShardId shard, Step step) const {
  const Slot* slot = Find(shard);
  if (slot == nullptr || !slot->asked.has_value() || step > *slot->asked) return false;
  // An answer to an earlier read than the newest one comes once, before that of the newest read.
  return step == *slot->asked || !slot->answered.has_value() || step > *slot->answered;
}

bool SendQueue::HasParameters(ShardId shard, Step step) const {
  const Slot* slot = Find(shard);
  return slot != nullptr && slot->held >= step;
}

bool SendQueue::HasPendingRead(ShardId shard) const {
  const Slot* slot = Find(shard);
  return slot != nullptr && slot->read.has_value();
}

void SendQueue::ResendUnanswered() {
  unsent_.clear();
  unsent_seeds_.clear();
  unsent_bytes_ = 0;
  for (Slot& slot : slots_) {
    slot.queued = false;
    slot.seed_queued = false;
    slot.sent_count = 0;
    slot.asked.reset();
    slot.asks = false;
    for (const PushEntry& push : slot.pushes) unsent_bytes_ += push.payload.size();
    if (!slot.pushes.empty() || slot.read.has_value()) Queue(slot);
  }
}

void SendQueue::ReadBeforePush(ShardId shard, Step next) {
  Slot& slot = *Find(shard);
  slot.push_end = next;
  const bool computes = slot.pushes.empty() && !slot.read.has_value() && slot.answered.has_value();
  if (computes && *slot.answered >= next) Read(shard, *slot.answered);
  slot.answered.reset();
}

std::vector<ShardId> SendQueue::unjudged() const {
  std::vector<ShardId> shards;
  for (const Slot& slot : slots_) {
    if (!slot.pushes.empty()) shards.push_back(slot.shard);
  }
  return shards;
}

std::vector<ShardId> SendQueue::unanswered() const {
  std::vector<ShardId> shards;
  for (const Slot& slot : slots_) {
    if (slot.read.has_value()) shards.push_back(slot.shard);
  }
  return shards;
}

std::string SendQueue::Awaited() const {
  if (const std::vector<ShardId> shards = unjudged(); !shards.empty()) {
    return absl::StrCat("waited for the verdicts of step ",
                        Find(shards[0])->pushes.front().step.value, " (", ShardRanges(shards), ")");
  }
  if (const std::vector<ShardId> shards = unanswered(); !shards.empty()) {
    return absl::StrCat("waited for the parameters of step ", Find(shards[0])->read->value, " (",
                        ShardRanges(shards), ")");
  }
  return "";
}

}  // namespace thinwire::client
