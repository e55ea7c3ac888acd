#include "server/edge/published_slots.h"

#include <utility>

namespace thinwire {

void PublishedSlots::Put(CodecId codec, Published published) {
  // What was there is let go after the lock: its last user may free a MiB.
  absl::MutexLock lock(&mu_);
  std::swap(slots_[codec], published);
}

Published PublishedSlots::Get(CodecId codec) const {
  absl::MutexLock lock(&mu_);
  const auto slot = slots_.find(codec);
  return slot == slots_.end() ? Published{} : slot->second;
}

void PublishedSlots::PutLog(std::shared_ptr<const VersionLog> log, Step frontier,
                            ByteChain taken_list) {
  // As above.
  absl::MutexLock lock(&mu_);
  log_.swap(log);
  log_frontier_ = frontier;
  std::swap(log_taken_list_, taken_list);
}

std::optional<PublishedDeltas> PublishedSlots::Since(Version held) const {
  absl::MutexLock lock(&mu_);
  if (log_ == nullptr || held == log_->newest()) return std::nullopt;
  std::optional<DeltaChain> chain = log_->Since(held);
  if (!chain.has_value()) return std::nullopt;
  return PublishedDeltas{log_frontier_, *std::move(chain), log_taken_list_};
}

}  // namespace thinwire
