#include "common/codec/error_feedback.h"

#include <vector>

#include "kernels/sparse.h"

namespace thinwire {

size_t ErrorFeedback::Encode(const Codec& codec, std::span<const float> gradient, const Turn& turn,
                             std::span<std::byte> out) {
  const bool leaves_nothing = codec.lossless() || !keep_error_;
  if (residual_.empty() && leaves_nothing) return codec.Encode(gradient, turn, out);
  residual_.resize(count_);
  const size_t length = codec.EncodeFeedback(gradient, residual_, turn, memory_, out);
  if (leaves_nothing) FloatArray(residual_.get_allocator()).swap(residual_);  // frees the memory
  return length;
}

void ErrorFeedback::GiveBack(const ByteChain& payload) {
  residual_.resize(count_);
  DecodePayloadAdd(payload, 1.0f, residual_);
}

void ErrorFeedback::GiveBack(const ByteChain& payload, std::span<const uint32_t> taken) {
  residual_.resize(count_);
  std::vector<float> owed(taken.size());
  kernels::Gather(residual_, taken, owed);
  GiveBack(payload);
  kernels::Scatter(taken, owed, 1.0f, residual_);
}

}  // namespace thinwire
