// Pairs of settings that real training did not survive, or that undo each other, and what to choose
// instead. docs/deltas.md tells what was measured.
//
// A sparse delta that is narrower than what changed is a second error feedback. Around a momentum
// that moves every parameter at every update it never catches up, and training diverges.
#ifndef THINWIRE_PROTO_DIVERGING_PAIRS_H_
#define THINWIRE_PROTO_DIVERGING_PAIRS_H_

#include <string>
#include <vector>

#include "proto/config.pb.h"

namespace thinwire {

struct PairProblem {
  std::string field;
  std::string text;  // ": want ..., got ..."
};

// Each field by itself is good. In the fields' order.
std::vector<PairProblem> DivergingPairs(const Consistency& consistency,
                                        const Optimization& optimization,
                                        const Compression& compression);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_DIVERGING_PAIRS_H_
