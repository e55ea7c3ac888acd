#include "experiments/peer_tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/select/top_k.h"

namespace thinwire {
namespace {

// Returns A + B: values with equal indices are added.
Entries Sum(const Entries& a, const Entries& b) {
  Entries sum;
  sum.reserve(a.size() + b.size());
  auto other = b.begin();
  for (Entry entry : a) {
    while (other != b.end() && other->index < entry.index) sum.push_back(*other++);
    if (other != b.end() && other->index == entry.index) entry.value += (other++)->value;
    sum.push_back(entry);
  }
  sum.insert(sum.end(), other, b.end());
  return sum;
}

}  // namespace

Entries MergeLargest(const Entries& a, const Entries& b, size_t k) {
  Entries sum = Sum(a, b);
  if (sum.size() <= k) return sum;
  std::ranges::nth_element(sum, sum.begin() + static_cast<ptrdiff_t>(k), {},
                           [](const Entry& e) { return std::pair(-std::abs(e.value), e.index); });
  sum.resize(k);
  std::ranges::sort(sum, {}, &Entry::index);
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

Entries PeerResidual::Select(std::span<const float> gradient, size_t k) {
  std::vector<uint32_t> indices(k);
  std::vector<float> values(k);
  kernels::AddAndSelectTopK(gradient, values_, {indices, values}, threshold_);
  Entries selected;
  selected.reserve(k);
  for (const uint32_t index : indices) {
    selected.push_back({index, std::exchange(values_[index], 0.0f)});
  }
  return selected;
}

void PeerResidual::Return(const Entries& selected, const Entries& applied) {
  auto other = applied.begin();
  for (const Entry& entry : selected) {
    while (other != applied.end() && other->index < entry.index) ++other;
    if (other == applied.end() || other->index != entry.index) values_[entry.index] += entry.value;
  }
}

}  // namespace thinwire
