// GradientNoise estimates the noise of the gradients of one shard from the pushes of single rounds,
// as in appendix A.1 of McCandlish et al. 2018 (arXiv 1812.06162).
//
// A push i of a round is the mean gradient of b_i examples, and the update's gradient is the mean
// of all B examples. With the true gradient G and the sum S of the variances of one example's
// values:
//
//   E |push i|^2 = |G|^2 + S / b_i        E |update|^2 = |G|^2 + S / B
//
// Both equations together give S and |G|^2. The noise scale of a model is S / |G|^2, each summed
// over all shards: about the batch size above which larger batches need fewer steps, but more
// examples. The errors of lossy codecs count as noise.
//
// A push with late examples is not the mean gradient of one batch, so it counts only as part of the
// update. Rounds with fewer than two pushes, or without a push that has no late examples, are left
// out. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_UPDATE_GRADIENT_NOISE_H_
#define THINWIRE_SERVER_CORE_UPDATE_GRADIENT_NOISE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "server/core/update/accumulator.h"

namespace thinwire {

// Means over the measured rounds. A single estimate of |G|^2 may be negative.
struct NoiseEstimate {
  double variance = 0;          // S
  double squared_gradient = 0;  // |G|^2
  uint64_t rounds = 0;          // the number of measured rounds

  // Returns S / |G|^2, in examples; nullopt if one of them is not above 0.
  std::optional<double> scale() const;
  bool operator==(const NoiseEstimate&) const = default;
};

// Returns the noise of a model with these shards: the sums, and the smallest number of rounds.
// REQUIRES: there is a shard.
NoiseEstimate SumOfNoise(std::span<const NoiseEstimate> shards);

class GradientNoise {
 public:
  // Adds GRADIENT, a push of the open round.
  void Add(const Gradient& gradient);
  // Ends the round. ROUND contains the sum of its gradients. REQUIRES: ROUND holds no gradient.
  void Close(const Accumulator& round);

  // Returns exponential means, to which each measured round contributes 1 / 8. The first 8 rounds
  // contribute equally.
  const NoiseEstimate& estimate() const { return estimate_; }

 private:
  struct Round {
    uint64_t pushes = 0;
    // Of the pushes without late examples:
    uint64_t single_batches = 0;
    double squares = 0;            // sum of |push i|^2
    double reciprocal_counts = 0;  // sum of 1 / b_i
  };

  Round open_;
  NoiseEstimate estimate_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_UPDATE_GRADIENT_NOISE_H_
