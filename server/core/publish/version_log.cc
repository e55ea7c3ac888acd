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

DeltaChain::const_iterator VersionLog::Find(Version base) const {
  const auto first =
      std::ranges::lower_bound(deltas_, base, {}, [](const auto& delta) { return delta->base; });
  return first != deltas_.end() && (*first)->base == base ? first : deltas_.end();
}

bool VersionLog::Contains(Version base) const {
  return base == newest_ || Find(base) != deltas_.end();
}

std::optional<DeltaChain> VersionLog::Since(Version base) const {
  if (!Contains(base)) return std::nullopt;
  return DeltaChain(Find(base), deltas_.end());
}

std::shared_ptr<const PublishedDelta> VersionLog::Unchanged() const {
  return std::make_shared<const PublishedDelta>(
      PublishedDelta{.kind = PublishedDelta::Kind::kUlpDelta,
                     .base = newest_,
                     .version = newest_,
                     .hash = deltas_.empty() ? 0 : deltas_.back()->hash});
}

}  // namespace thinwire
