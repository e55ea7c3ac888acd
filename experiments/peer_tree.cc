#include "experiments/peer_tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace thinwire {

Entries MergeLargest(const Entries& a, const Entries& b, size_t k) {
  Entries sum = a;
  for (const auto& [index, value] : b) sum[index] += value;
  std::vector<std::pair<float, uint32_t>> keys;  // pairs of -magnitude and index
  for (const auto& [index, value] : sum) keys.emplace_back(-std::abs(value), index);
  std::sort(keys.begin(), keys.end());
  for (size_t i = k; i < keys.size(); ++i) sum.erase(keys[i].second);
  return sum;
}

Entries PeerTree(std::vector<Entries> selected, size_t k) {
  while (selected.size() > 1) {
    std::vector<Entries> merged;
    for (size_t i = 0; i < selected.size(); i += 2) {
      merged.push_back(MergeLargest(selected[i], selected[i + 1], k));
    }
    selected = std::move(merged);
  }
  return std::move(selected.front());
}

}  // namespace thinwire
