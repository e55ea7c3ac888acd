#include "client/put_backs.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/codec/sparse/index_list.h"

namespace thinwire::client {

PutBacks::Outcome PutBacks::Match(const Slot& slot, PushEntry push) {
  if (!slot.keeps || slot.frontier != push.step + 1) return {.lost = true};
  return {.push = std::move(push), .taken = slot.taken};
}

PutBacks::Outcome PutBacks::Accepted(const PushEntry& push) {
  Slot& slot = slots_[push.shard.value];
  if (!slot.keeps || push.examples == 0) return {};
  if (slot.frontier > push.step) return Match(slot, push);
  const bool lost = slot.push.has_value();
  if (!lost) ++pending_count_;
  slot.push = push;
  return {.lost = lost};
}

absl::StatusOr<PutBacks::Outcome> PutBacks::Answered(const ParametersEntry& entry,
                                                     size_t value_count) {
  Slot& slot = slots_[entry.shard.value];
  std::vector<uint32_t> taken;
  if (!entry.selected.empty()) {
    auto decoded = DecodeIndexList(entry.selected, value_count);
    if (!decoded.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", entry.shard.value, ": selected: ", decoded.status().message()));
    }
    taken = *std::move(decoded);
  }
  slot.keeps = !entry.selected.empty();
  slot.frontier = entry.frontier;
  slot.taken = std::move(taken);
  if (!slot.push.has_value()) return Outcome();
  PushEntry push = *std::move(slot.push);
  slot.push.reset();
  --pending_count_;
  return Match(slot, std::move(push));
}

}  // namespace thinwire::client
