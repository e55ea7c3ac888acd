// MomentumCorrection: keeps the momentum u of one shard at the worker. g is the shard's gradient
// and m the momentum factor.
//
//   u = m u + g;   residual += u            heavy ball
//   u = m u + g;   residual += m u + g      nesterov
//   u = 0 at each entry of a sparse payload (factor masking)
//
// From "Deep Gradient Compression" (Lin et al. 2018, sections 3.1 and 3.2). The paper's Nesterov
// variant stores m u, and this class stores u; the results are equal. A coordinate that stays in
// the residual for several steps accumulates the momentum that the server would have applied to
// each of its gradients. Factor masking prevents old momentum from changing a coordinate that was
// just sent.
//
// A dense payload sends every value, so factor masking would set the whole momentum to zero.
// Therefore dense payloads are not masked: the momentum of dense shards, and of sparse shards
// during a dense warm-up, is never reset.
//
// The values of a late push are added to the residual, but not to the momentum. The momentum
// already includes the push's gradient, except where factor masking has removed it on purpose.
#ifndef THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_
#define THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_

#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/payload.h"
#include "common/memory/float_array.h"
#include "common/spec/push_spec.h"

namespace thinwire::client {

// Not thread-safe.
class MomentumCorrection {
 public:
  // MEMORY is the allocator of the momentum; it must outlive this object.
  explicit MomentumCorrection(const CorrectionOptions& options,
                              std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : options_(options), u_(memory) {}

  // Adds GRADIENT to u and returns the values to add to the residual. The result refers to
  // GRADIENT, u or SCRATCH, and is valid until that array changes. Makes one pass over the shard,
  // after which u is in the CPU's cache for the codec. REQUIRES: all values are finite; GRADIENT
  // has the same length in every call.
  std::span<const float> Correct(std::span<const float> gradient, std::vector<float>& scratch);
  // Applies factor masking: sets u to zero at the entries of PAYLOAD, which was encoded from the
  // residual.
  void Sent(const CheckedPayload& payload);
  // The same for the entries with these INDICES.
  void Sent(std::span<const uint32_t> indices);

  bool enabled() const { return options_.enabled; }
  // Returns u; empty if all its values are zero.
  std::span<const float> momentum() const { return u_; }
  // Sets u to MOMENTUM, an earlier result of momentum().
  void Restore(std::span<const float> momentum) { u_.assign(momentum.begin(), momentum.end()); }

 private:
  CorrectionOptions options_;
  FloatArray u_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_MOMENTUM_CORRECTION_H_
