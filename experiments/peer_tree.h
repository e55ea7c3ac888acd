// The tree of peers of gTop-k as published (Shi et al. 2019, arXiv 1901.04359, algorithm 3), for
// comparison: thinwire's own selection is server/core/global_top_k.h.
//
//   P workers, a power of two, each with the k values it selected. In log2 P rounds neighbours
//   merge in pairs: values of equal indices add, and the k largest magnitudes of the pair survive.
//
//   w0 ---+
//   w1 ---+--- k ---+
//   w2 ---+         +--- k: what everybody applies, divided by P
//   w3 ---+--- k ---+
//
// What is pruned at an inner node goes back to the worker's residual only if its index is missing
// at the root too. If the other half brought that index to the root, it is lost.
#ifndef THINWIRE_EXPERIMENTS_PEER_TREE_H_
#define THINWIRE_EXPERIMENTS_PEER_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace thinwire {

// Some values of an array, by their indices.
using Entries = std::map<uint32_t, float>;

// A plus B, and of that the K largest magnitudes; of equal ones the lower index.
Entries MergeLargest(const Entries& a, const Entries& b, size_t k);

// What the tree brings to the root from what the workers SELECTED. REQUIRES: selected.size() is a
// power of two.
Entries PeerTree(std::vector<Entries> selected, size_t k);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_PEER_TREE_H_
