// ErrorFeedback: remembers what a codec lost of one shard's gradients, and sends it with a later
// one.
//
//   v = residual + gradient;   payload = C(v);   residual = v - decode(payload)
//
// (Seide et al. 2014, section 3; Karimireddy et al. 2019.) The values of a push that came too late
// are given back to the residual, so that what was produced is what was applied plus the residual.
// With `keep_error` false the codec's own loss is dropped, but a late push still comes back. The
// residual takes no memory while it is zero.
//
// Not thread-safe. A payload is encoded once: a retry sends the same bytes.
#ifndef THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_
#define THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "common/codec/codec.h"
#include "common/float_array.h"

namespace thinwire {

class ErrorFeedback {
 public:
  // For a shard of COUNT values. The residual lies in MEMORY, which outlives this.
  ErrorFeedback(size_t count, bool keep_error,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : count_(count), keep_error_(keep_error), residual_(memory) {}

  // Encodes residual + GRADIENT with CODEC, which may be another one at each call, as it is done on
  // TURN. Returns the payload's length. REQUIRES: gradient.size() == count, all finite; out.size()
  // >= codec.MaxPayloadBytes(count).
  size_t Encode(const Codec& codec, std::span<const float> gradient, const Turn& turn,
                std::span<std::byte> out);

  // Whether the payload of any gradient would be its fp32 bytes.
  bool SendsAsItIs(const Codec& codec) const {
    return residual_.empty() && codec.id() == CodecId::kFp32;
  }

  // residual += decode(payload), for a push whose verdict was kLate; once per push.
  // REQUIRES: CheckPayload(payload, count) passed.
  void GiveBack(const ByteChain& payload);
  // The same but at TAKEN, for a push of which these values were used; rising indices below count.
  void GiveBack(const ByteChain& payload, std::span<const uint32_t> taken);

  // Goes on from what residual() was. REQUIRES: empty, or `count` values.
  void Restore(std::span<const float> residual) {
    residual_.assign(residual.begin(), residual.end());
  }

  // Empty while it is zero, else `count` values.
  std::span<const float> residual() const { return residual_; }

 private:
  const size_t count_;
  const bool keep_error_;
  FloatArray residual_;
  CodecMemory memory_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_
