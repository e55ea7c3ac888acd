// MomentumCorrection: the momentum of one shard's gradients, at the worker that makes them.
//
//   u = m u + g;   residual += u            heavy ball
//   u = m u + g;   residual += m u + g      nesterov
//   where a sparse payload has an entry:    u = 0 (factor masking)
//
// (Deep gradient compression, Lin et al. 2018, sections 3.1 and 3.2. Their Nesterov keeps m u where
// this keeps u: the same numbers.) A value that waits in the residual for its turn brings what
// momentum at the server would have made of each of its gradients; masking stops a coordinate that
// was just sent from being driven on by what is stale.
//
// A dense payload sends everything, and masking it would leave no momentum at all, so it masks
// nothing: dense shards, and sparse ones while they warm up densely, see plain momentum.
//
// A push that comes back late restores the residual only: its gradients are in u already, or masked
// on purpose.
#ifndef THINWIRE_CLIENT_MOMENTUM_CORRECTION_H_
#define THINWIRE_CLIENT_MOMENTUM_CORRECTION_H_

#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/payload.h"
#include "common/float_array.h"

namespace thinwire {

struct CorrectionOptions {
  bool enabled = false;
  float momentum = 0.9f;
  bool nesterov = false;
  bool factor_masking = true;

  bool operator==(const CorrectionOptions&) const = default;
};

namespace client {

// Not thread-safe.
class MomentumCorrection {
 public:
  // The momentum lies in MEMORY, which outlives this.
  explicit MomentumCorrection(const CorrectionOptions& options,
                              std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : options_(options), u_(memory) {}

  // Takes GRADIENT in, and returns what to add to the residual in its place: GRADIENT itself, u, or
  // SCRATCH; valid until any of them changes. In one pass over the shard, which leaves u in the
  // cache for the codec's. REQUIRES: finite values, always as many.
  std::span<const float> Correct(std::span<const float> gradient, std::vector<float>& scratch);
  // PAYLOAD is what was made of the residual.
  void Sent(const CheckedPayload& payload);

  bool enabled() const { return options_.enabled; }
  // u; empty while it is zero.
  std::span<const float> momentum() const { return u_; }
  // Goes on from what momentum() was.
  void Restore(std::span<const float> momentum) { u_.assign(momentum.begin(), momentum.end()); }

 private:
  CorrectionOptions options_;
  FloatArray u_;
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_MOMENTUM_CORRECTION_H_
