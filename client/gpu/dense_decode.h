// DenseDecoder: decodes dense payloads into values on the device; DeviceDecoder (device_decode.h)
// says how it is used and what is staged. Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DENSE_DECODE_H_
#define THINWIRE_CLIENT_GPU_DENSE_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codebook/codebook.h"
#include "common/codec/payload.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class DenseDecoder {
 public:
  // Decodes SCALE times the values of PAYLOAD, which outlives the decoder. REQUIRES: PAYLOAD is
  // dense.
  DenseDecoder(const CheckedPayload& payload, float scale);

  size_t staged_bytes() const { return TableBytes() + code_bytes_; }
  size_t workspace_bytes() const { return Unpacks() ? count_ : 0; }
  void Stage(std::span<std::byte> staged) const;

  // out = the values, or out += them
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, bool adds,
                               const kernels::cuda::Stream& stream) const;

 private:
  bool Unpacks() const;        // codes to a byte each
  size_t TableFloats() const;  // that are staged
  size_t TableBytes() const;   // up to where the codes are
  void StageTables(std::span<float> tables) const;
  kernels::cuda::Status DecodeNumbers(const std::byte* codes, std::span<float> out, bool adds,
                                      const kernels::cuda::Stream& stream) const;
  kernels::cuda::Status DecodeQsgd(const std::byte* numbers, const std::byte* codes,
                                   std::span<float> out, bool adds,
                                   const kernels::cuda::Stream& stream) const;

  bool HasRandomLevels() const;

  const CheckedPayload& payload_;
  const size_t count_;
  const float scale_;
  const CodebookFormat* const format_;  // null: a number format
  CodebookHead head_ = {};
  CodebookShape shape_ = {};
  size_t codes_offset_ = 0;  // in the payload, as far as its end
  size_t code_bytes_ = 0;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DENSE_DECODE_H_
