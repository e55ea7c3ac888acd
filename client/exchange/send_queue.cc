#include "client/exchange/send_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/exchange/status_report.h"

namespace thinwire::client {

SendQueue::SendQueue(std::vector<ShardId> shards) {
  for (const ShardId shard : shards) {
    Slot slot;
    slot.shard = shard;
    slots_.push_back(std::move(slot));
  }
}

const SendQueue::Slot* SendQueue::Find(ShardId shard) const {
  const auto it = std::lower_bound(slots_.begin(), slots_.end(), shard,
                                   [](const Slot& slot, ShardId s) { return slot.shard < s; });
  return it != slots_.end() && it->shard == shard ? &*it : nullptr;
}

SendQueue::Slot* SendQueue::Find(ShardId shard) {
  return const_cast<Slot*>(std::as_const(*this).Find(shard));
}

void SendQueue::SetQueuedBytes(Slot& slot, size_t bytes) {
  unsent_bytes_ += bytes - slot.queued_bytes;
  slot.queued_bytes = bytes;
}

void SendQueue::Queue(Slot& slot) {
  SetQueuedBytes(slot, slot.push.has_value() ? slot.push->payload.size() : 0);
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
  Queue(slot);
}

void SendQueue::Push(PushEntry push) {
  Slot& slot = *Find(push.shard);
  const bool reads_step = slot.read == push.step;
  slot.read = push.step + 1;
  slot.push = std::move(push);
  if (!slot.keeps_push_back() || !reads_step) Queue(slot);
}

bool SendQueue::FillMessage(const Replica& replica, std::optional<CodecId> pull,
                            WorkerFrame& frame) {
  size_t bytes = AddSeeds(replica, frame);
  bool any = !frame.seeds.empty();
  while (!unsent_.empty()) {
    Slot& slot = slots_[unsent_.front()];
    // The first entry of a message may exceed the message's size limit, because the payload of the
    // largest shard alone exceeds this limit.
    const bool sends_push = slot.push.has_value() && !slot.keeps_push_back();
    const size_t more = sends_push ? slot.push->payload.size() : 0;
    if (any && bytes + more > kMessageBytes) break;
    unsent_.pop_front();
    slot.queued = false;
    SetQueuedBytes(slot, 0);
    // Skips entries that were answered after they were queued.
    if (!slot.push.has_value() && !slot.read.has_value()) continue;
    AddEntries(slot, replica, pull, frame);
    bytes += more;
    any = true;
  }
  return any;
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

void SendQueue::AddEntries(const Slot& slot, const Replica& replica, std::optional<CodecId> pull,
                           WorkerFrame& frame) {
  const Version held = replica.held_version(slot.shard);
  uint32_t codec = replica.holds(slot.shard) ? kReadDeltas : kReadPublished;
  if (pull.has_value()) codec = static_cast<uint32_t>(*pull);
  if (slot.push.has_value() && !slot.keeps_push_back()) {
    PushEntry push = *slot.push;
    push.held_version = held;
    push.read_codec = codec;
    frame.pushes.push_back(std::move(push));
    return;
  }
  frame.reads.push_back({.shard = slot.shard,
                         .step = *slot.awaited_step(),
                         .held_version = held,
                         .read_codec = codec});
}

std::optional<PushEntry> SendQueue::FinishPush(ShardId shard, Step step) {
  Slot* slot = Find(shard);
  if (slot == nullptr || !slot->push.has_value() || slot->push->step != step) return std::nullopt;
  return std::exchange(slot->push, std::nullopt);
}

bool SendQueue::FinishRead(ShardId shard, Step step) {
  Slot* slot = Find(shard);
  if (slot == nullptr || slot->awaited_step() != step) return false;
  slot->held = step;
  const bool kept_back = slot->keeps_push_back();
  slot->reads_before_push = false;
  if (kept_back) {
    Queue(*slot);
  } else {
    slot->read.reset();
  }
  return true;
}

void SendQueue::ReadAgain(ShardId shard) { Queue(*Find(shard)); }

bool SendQueue::AwaitsParameters(ShardId shard, Step step) const {
  const Slot* slot = Find(shard);
  return slot != nullptr && slot->awaited_step() == step;
}

bool SendQueue::HasParameters(ShardId shard, Step step) const {
  const Slot* slot = Find(shard);
  return slot != nullptr && slot->held == step;
}

bool SendQueue::HasPendingRead(ShardId shard) const {
  const Slot* slot = Find(shard);
  return slot != nullptr && slot->read.has_value();
}

void SendQueue::ResendUnanswered() {
  unsent_.clear();
  unsent_seeds_.clear();
  for (Slot& slot : slots_) {
    slot.queued = false;
    slot.seed_queued = false;
    SetQueuedBytes(slot, 0);
  }
  for (Slot& slot : slots_) {
    if (slot.push.has_value() || slot.read.has_value()) Queue(slot);
  }
}

void SendQueue::ReadBeforePush(ShardId shard, Step next) {
  Slot& slot = *Find(shard);
  slot.reads_before_push = !slot.push.has_value() || slot.push->step >= next;
  const bool computes = !slot.push.has_value() && !slot.read.has_value() && slot.held.has_value();
  if (computes && *slot.held >= next) Read(shard, *slot.held);
}

std::vector<ShardId> SendQueue::unjudged() const {
  std::vector<ShardId> shards;
  for (const Slot& slot : slots_) {
    if (slot.push.has_value()) shards.push_back(slot.shard);
  }
  return shards;
}

const PushEntry* SendQueue::unjudged_push(ShardId shard) const {
  const Slot& slot = *Find(shard);
  return slot.push.has_value() ? &*slot.push : nullptr;
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
    return absl::StrCat("waited for the verdicts of step ", Find(shards[0])->push->step.value, " (",
                        ShardRanges(shards), ")");
  }
  if (const std::vector<ShardId> shards = unanswered(); !shards.empty()) {
    return absl::StrCat("waited for the parameters of step ", Find(shards[0])->read->value, " (",
                        ShardRanges(shards), ")");
  }
  return "";
}

}  // namespace thinwire::client
