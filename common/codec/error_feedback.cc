#include "common/codec/error_feedback.h"

#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/sparse.h"

namespace thinwire {

size_t ErrorFeedback::Encode(const Codec& codec, std::span<const float> gradient,
                             const RandomKeys& keys, std::span<std::byte> out) {
  const bool leaves_nothing = codec.lossless() || !keep_error_;
  if (residual_.empty() && leaves_nothing && !codec.needs_memory()) {
    return codec.Encode(gradient, keys, out);
  }
  residual_.resize(count_);
  const size_t length = codec.EncodeFeedback(gradient, residual_, keys, memory_, out);
  if (leaves_nothing) FloatArray(residual_.get_allocator()).swap(residual_);  // frees the memory
  return length;
}

void ErrorFeedback::Decay(float factor) {
  if (factor != 1) kernels::ScaleFinite(factor, residual_, residual_);
}

void ErrorFeedback::GiveBack(const CheckedPayload& payload) {
  residual_.resize(count_);
  DecodePayloadAdd(payload, 1.0f, residual_);
}

void ErrorFeedback::GiveBack(const CheckedPayload& payload, std::span<const uint32_t> applied) {
  residual_.resize(count_);
  std::vector<float> kept(applied.size());
  kernels::Gather(residual_, applied, kept);
  GiveBack(payload);
  kernels::Scatter(applied, kept, 1.0f, residual_);
}

}  // namespace thinwire
