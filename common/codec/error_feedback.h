// ErrorFeedback: keeps the encoding error of one shard's gradients and adds it to the next
// gradient.
//
//   v = residual + gradient;   payload = C(v);   residual = v - decode(payload)
//
// C is the codec (Seide et al. 2014, section 3; Karimireddy et al. 2019). A push that the server
// rejects as late is added back to the residual. The sum of all gradients therefore always
// equals the sum of the values that servers applied plus the residual. If `keep_error` is false,
// the encoding error is dropped, and only late pushes are added back. A residual of zero takes no
// memory.
//
// A payload is encoded once, and a retry sends the same bytes. Not thread-safe.
#ifndef THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_
#define THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "common/codec/codec.h"
#include "common/memory/float_array.h"
#include "common/model/matrix_run.h"

namespace thinwire {

class ErrorFeedback {
 public:
  // Creates the state of a shard of COUNT values, whose position in their matrix is MATRIX. The
  // residual is allocated from MEMORY, which must outlive this object.
  ErrorFeedback(size_t count, bool keep_error,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                const MatrixRun& matrix = {})
      : count_(count), keep_error_(keep_error), residual_(memory), memory_{.matrix = matrix} {}

  // Writes the payload of residual + GRADIENT to OUT and returns its length. CODEC may change from
  // call to call. REQUIRES: GRADIENT has `count` finite values; out.size() >=
  // codec.MaxPayloadBytes(count).
  size_t Encode(const Codec& codec, std::span<const float> gradient, const RandomKeys& keys,
                std::span<std::byte> out);

  // Multiplies the residual by FACTOR, which is at most 1 and not negative. What it takes from the
  // residual is never sent.
  void Decay(float factor);

  // Returns whether Encode with CODEC would write the unchanged fp32 bytes of a gradient, because
  // CODEC is fp32 and the residual is zero.
  bool SendsAsItIs(const Codec& codec) const {
    return residual_.empty() && codec.id() == CodecId::kFp32;
  }

  // Adds the decoded PAYLOAD to the residual. The caller calls GiveBack once for each push with the
  // verdict kLate. REQUIRES: PAYLOAD has `count` values.
  void GiveBack(const CheckedPayload& payload);
  // Adds the decoded PAYLOAD to the residual, except the values at the indices APPLIED, which the
  // server has applied. REQUIRES: APPLIED is ascending and its elements are below `count`.
  void GiveBack(const CheckedPayload& payload, std::span<const uint32_t> applied);

  // Sets the residual to RESIDUAL, an earlier result of residual(), and forgets the warm start of
  // powersgd. REQUIRES: RESIDUAL is empty or has `count` values.
  void Restore(std::span<const float> residual) {
    residual_.assign(residual.begin(), residual.end());
    memory_.warm_start.clear();
  }

  // Returns the residual: `count` values, or an empty span if all of them are zero.
  std::span<const float> residual() const { return residual_; }

 private:
  const size_t count_;
  const bool keep_error_;
  FloatArray residual_;
  CodecMemory memory_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_ERROR_FEEDBACK_H_
