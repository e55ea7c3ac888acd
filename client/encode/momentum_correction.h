// MomentumCorrection: the momentum u of one shard's gradients g at the worker.
//
//   u = m u + g;   residual += u            heavy ball
//   u = m u + g;   residual += m u + g      nesterov
//   u = 0 at each entry of a sparse payload (factor masking)
//
// From "Deep Gradient Compression" (Lin et al. 2018, sections 3.1 and 3.2). Its Nesterov variant
// stores m u and this class stores u; the results are equal. A value that stays in the residual for
// several steps accumulates the momentum that the server would have applied to each of its
// gradients. Factor masking stops stale momentum from driving a coordinate that was just sent.
//
// A dense payload has an entry at every value, and masking all of them would leave no momentum. So
// dense payloads are not masked: dense shards, and sparse shards during a dense warm-up, have plain
// momentum.
//
// A late push adds its values to the residual only. The momentum contains its gradients already, or
// masking removed them on purpose.
#ifndef THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_
#define THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_

#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/payload.h"
#include "common/float_array.h"
#include "common/spec/push_spec.h"

namespace thinwire::client {

// Not thread-safe.
class MomentumCorrection {
 public:
  // MEMORY holds the momentum and must outlive this object.
  explicit MomentumCorrection(const CorrectionOptions& options,
                              std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : options_(options), u_(memory) {}

  // Adds GRADIENT to u and returns the values to add to the residual: GRADIENT itself, u, or
  // SCRATCH. The result is valid until the returned array changes. Makes one pass over the shard,
  // which leaves u in the cache for the codec. REQUIRES: finite values; the same number in every
  // call.
  std::span<const float> Correct(std::span<const float> gradient, std::vector<float>& scratch);
  // With factor masking, sets u to 0 at the entries of PAYLOAD, which was encoded from the
  // residual. Does nothing for a dense payload.
  void Sent(const CheckedPayload& payload);

  bool enabled() const { return options_.enabled; }
  // Returns u; empty while all of it is zero.
  std::span<const float> momentum() const { return u_; }
  // Sets u to a former momentum().
  void Restore(std::span<const float> momentum) { u_.assign(momentum.begin(), momentum.end()); }

 private:
  CorrectionOptions options_;
  FloatArray u_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_
