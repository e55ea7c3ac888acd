#include "server/shards/stream/published_slots.h"

#include <utility>

namespace thinwire {

void PublishedSlots::Put(CodecId codec, EncodedParameters parameters) {
  // After the swap, PARAMETERS contains the old parameters. They are destroyed after the lock is
  // released, because freeing up to one MiB of memory takes time.
  absl::MutexLock lock(&mu_);
  std::swap(slots_[codec], parameters);
}

EncodedParameters PublishedSlots::Get(CodecId codec) const {
  absl::MutexLock lock(&mu_);
  const auto slot = slots_.find(codec);
  return slot == slots_.end() ? EncodedParameters{} : slot->second;
}

void PublishedSlots::PutPublished(PublishedState published) {
  // After the swap, PUBLISHED is the old state, which is destroyed after the lock is released.
  absl::MutexLock lock(&mu_);
  std::swap(published_, published);
}

PublishedState PublishedSlots::published() const {
  absl::MutexLock lock(&mu_);
  return published_;
}

PublishedDeltas PublishedSlots::Since(std::optional<Version> held) const {
  const PublishedState now = published();
  PublishedDeltas deltas = {.frontier = now.frontier, .selected_list = now.selected_list};
  std::optional<DeltaChain> chain;
  if (held.has_value()) chain = now.log->Since(*held);
  if (!chain.has_value()) {
    deltas.chain.push_back(now.full);
    chain = now.log->Since(now.full->version);
  }
  deltas.chain.insert(deltas.chain.end(), chain->begin(), chain->end());
  if (deltas.chain.empty()) deltas.chain.push_back(now.log->Unchanged());
  return deltas;
}

}  // namespace thinwire
