// gTop-k in a tree of peers, as published (Shi et al. 2019, arXiv 1901.04359, algorithms 3 and 4),
// for comparison. thinwire's own selection is server/core/update/global_top_k.h.
//
//   Each of P workers has selected k values; P is a power of two. In log2 P rounds, neighbours
//   merge in pairs: values with equal indices are added, and the k sums of largest magnitude
//   remain.
//
//   w0 ---+
//   w1 ---+--- k ---+
//   w2 ---+         +--- k: the result that all workers apply, divided by P
//   w3 ---+--- k ---+
//
// A value that an inner node prunes returns to the residual of its worker only if its index is
// missing at the root. If the other half of the tree brought the same index to the root, the pruned
// value is lost.
#ifndef THINWIRE_EXPERIMENTS_PEER_TREE_H_
#define THINWIRE_EXPERIMENTS_PEER_TREE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thinwire {

// One value of an array.
struct Entry {
  uint32_t index = 0;
  float value = 0;

  bool operator==(const Entry&) const = default;
};
// Sparse values of an array, in ascending order of their indices.
using Entries = std::vector<Entry>;

// Returns the K entries of A + B with the largest magnitudes. Among equal magnitudes, the lower
// index wins.
Entries MergeLargest(const Entries& a, const Entries& b, size_t k);

// Returns the K entries at the root of the tree. SELECTED contains the selected entries of each
// worker. REQUIRES: selected.size() is a power of two.
Entries PeerTree(std::vector<Entries> selected, size_t k);

// PeerResidual is the gradient that one worker has not sent yet. Not thread-safe.
class PeerResidual {
 public:
  explicit PeerResidual(size_t value_count) : values_(value_count) {}

  // Adds GRADIENT to the residual, removes the K values of largest magnitude from the residual and
  // returns them. REQUIRES: gradient.size() == value_count; k <= value_count.
  Entries Select(std::span<const float> gradient, size_t k);
  // Adds the values of SELECTED, a result of Select(), whose indices are missing in APPLIED.
  void Return(const Entries& selected, const Entries& applied);

  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> values_;
  uint32_t threshold_ = 0;  // the predicted threshold of the next selection
};

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_PEER_TREE_H_
