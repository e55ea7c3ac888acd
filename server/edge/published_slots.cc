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

}  // namespace thinwire
