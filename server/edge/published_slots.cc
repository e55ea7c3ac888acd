#include "server/edge/published_slots.h"

#include <utility>

namespace thinwire {

void PublishedSlots::Put(CodecId codec, EncodedParameters parameters) {
  // After the swap, PARAMETERS contains the old parameters. They are destroyed after the lock is
  // released, because this may free a MiB.
  absl::MutexLock lock(&mu_);
  std::swap(slots_[codec], parameters);
}

EncodedParameters PublishedSlots::Get(CodecId codec) const {
  absl::MutexLock lock(&mu_);
  const auto slot = slots_.find(codec);
  return slot == slots_.end() ? EncodedParameters{} : slot->second;
}

void PublishedSlots::PutLog(std::shared_ptr<const VersionLog> log, Step frontier,
                            ByteChain selected_list) {
  // After the swap, LOG is the old log, which is destroyed after the lock is released.
  absl::MutexLock lock(&mu_);
  log_.swap(log);
  log_frontier_ = frontier;
  std::swap(log_selected_list_, selected_list);
}

std::optional<PublishedDeltas> PublishedSlots::Since(Version held) const {
  absl::MutexLock lock(&mu_);
  if (log_ == nullptr || held == log_->newest()) return std::nullopt;
  std::optional<DeltaChain> chain = log_->Since(held);
  if (!chain.has_value()) return std::nullopt;
  return PublishedDeltas{log_frontier_, *std::move(chain), log_selected_list_};
}

}  // namespace thinwire
