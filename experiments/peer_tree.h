// The merge of gTop-k in a tree of peers, as published (Shi et al. 2019, arXiv 1901.04359,
// algorithm 3), for comparison. thinwire's own selection is server/core/update/global_top_k.h.
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
#include <map>
#include <vector>

namespace thinwire {

// Sparse values of an array: index -> value.
using Entries = std::map<uint32_t, float>;

// Returns the K entries of A + B with the largest magnitudes. Among equal magnitudes, the lower
// index wins.
Entries MergeLargest(const Entries& a, const Entries& b, size_t k);

// Returns the K entries at the root of the tree. SELECTED contains the selected entries of each
// worker. REQUIRES: selected.size() is a power of two.
Entries PeerTree(std::vector<Entries> selected, size_t k);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_PEER_TREE_H_
