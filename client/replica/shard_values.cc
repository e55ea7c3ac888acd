#include "client/replica/shard_values.h"

#include <algorithm>

namespace thinwire::client {

std::span<const float> Gather(std::span<const Segment> segments,
                              std::span<const std::span<const float>> tensors,
                              std::vector<float>& scratch) {
  if (segments.size() == 1) {
    const Segment& s = segments[0];
    return tensors[s.tensor].subspan(s.offset, s.count);
  }
  scratch.clear();
  for (const Segment& s : segments) {
    const std::span<const float> from = tensors[s.tensor].subspan(s.offset, s.count);
    scratch.insert(scratch.end(), from.begin(), from.end());
  }
  return scratch;
}

std::span<float> InPlace(std::span<const Segment> segments,
                         std::span<const std::span<float>> tensors) {
  if (segments.size() != 1) return {};
  const Segment& s = segments[0];
  return tensors[s.tensor].subspan(s.offset, s.count);
}

void Scatter(std::span<const float> values, std::span<const Segment> segments,
             std::span<const std::span<float>> tensors) {
  for (const Segment& s : segments) {
    std::copy_n(values.begin(), s.count, tensors[s.tensor].begin() + s.offset);
    values = values.subspan(s.count);
  }
}

}  // namespace thinwire::client
