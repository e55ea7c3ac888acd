#include "client/exchange/gtopk_returns.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/sparse/index_list.h"

namespace thinwire::client {

GtopkReturns::GtopkReturns(const Partition& partition, PushEncoder& encoder, StatusReport& report)
    : partition_(partition), encoder_(encoder), report_(report), slots_(partition.shard_count()) {}

absl::Status GtopkReturns::Return(const Slot& slot, const PushEntry& push) {
  if (!slot.keeps || slot.frontier != push.step + 1) {
    CountLost();
    return absl::OkStatus();
  }
  return encoder_.ReturnUnselected(push, slot.selected);
}

absl::Status GtopkReturns::OnAccepted(const PushEntry& push) {
  Slot& slot = slots_[push.shard.value];
  if (!slot.keeps || push.examples == 0) return absl::OkStatus();
  if (slot.frontier > push.step) return Return(slot, push);
  if (slot.push.has_value()) {
    CountLost();  // the selected indices for the shard's previous push never arrived
  } else {
    ++pending_count_;
  }
  slot.push = push;
  return absl::OkStatus();
}

absl::Status GtopkReturns::OnParameters(const ParametersEntry& entry) {
  Slot& slot = slots_[entry.shard.value];
  std::vector<uint32_t> selected;
  if (!entry.selected.empty()) {
    auto decoded = DecodeIndexList(entry.selected, partition_.value_count(entry.shard));
    if (!decoded.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", entry.shard.value, ": selected: ", decoded.status().message()));
    }
    selected = *std::move(decoded);
  }
  slot.keeps = !entry.selected.empty();
  slot.frontier = entry.frontier;
  slot.selected = std::move(selected);
  if (!slot.push.has_value()) return absl::OkStatus();
  const PushEntry push = *std::exchange(slot.push, std::nullopt);
  --pending_count_;
  return Return(slot, push);
}

}  // namespace thinwire::client
