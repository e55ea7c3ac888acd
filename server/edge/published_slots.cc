#include "server/edge/published_slots.h"

#include <utility>

namespace thinwire {

void PublishedSlots::Put(CodecId codec, EncodedParameters parameters) {
  // PARAMETERS, the old content after the swap, is destroyed after the lock is released: it may
  // free a MiB.
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
  // The old content is destroyed after the lock is released.
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
