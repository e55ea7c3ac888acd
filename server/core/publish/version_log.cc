#include "server/core/publish/version_log.h"

#include <algorithm>
#include <utility>

namespace thinwire {
namespace {

// The maximum number of deltas in a log. A reader that missed more deltas receives all values,
// which costs less.
constexpr size_t kMaxDeltas = 256;

}  // namespace

void VersionLog::Append(PublishedDelta delta) {
  newest_ = delta.version;
  bytes_ += delta.payload.size();
  deltas_.push_back(std::make_shared<const PublishedDelta>(std::move(delta)));
  auto kept = deltas_.begin();
  while (bytes_ > max_bytes_ || static_cast<size_t>(deltas_.end() - kept) > kMaxDeltas) {
    bytes_ -= (*kept)->payload.size();
    ++kept;
  }
  deltas_.erase(deltas_.begin(), kept);
}

std::optional<DeltaChain> VersionLog::Since(Version base) const {
  if (base == newest_) return DeltaChain();
  const auto first =
      std::ranges::lower_bound(deltas_, base, {}, [](const auto& delta) { return delta->base; });
  if (first == deltas_.end() || (*first)->base != base) return std::nullopt;
  return DeltaChain(first, deltas_.end());
}

}  // namespace thinwire
