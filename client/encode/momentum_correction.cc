#include "client/encode/momentum_correction.h"

#include "kernels/update/accumulate_momentum.h"

namespace thinwire::client {

std::span<const float> MomentumCorrection::Correct(std::span<const float> gradient,
                                                   std::vector<float>& scratch) {
  if (!options_.enabled) return gradient;
  u_.resize(gradient.size());
  if (!options_.nesterov) {
    kernels::AccumulateMomentum(options_.momentum, gradient, u_);
    return u_;
  }
  scratch.resize(gradient.size());
  kernels::AccumulateNesterov(options_.momentum, gradient, u_, scratch);
  return scratch;
}

void MomentumCorrection::Sent(const CheckedPayload& payload) {
  if (!options_.enabled || !options_.factor_masking || !PayloadIsSparse(payload)) return;
  ForEachPayloadEntry(payload, [this](std::span<const uint32_t> indices, std::span<const float>) {
    Sent(indices);
  });
}

void MomentumCorrection::Sent(std::span<const uint32_t> indices) {
  if (!options_.enabled || !options_.factor_masking) return;
  for (const uint32_t index : indices) u_[index] = 0;
}

}  // namespace thinwire::client
