// DeviceCodec is a codec (common/codec/codec.h) whose gradients, residuals and payloads are in GPU
// memory. Its payloads and residuals equal those of the CPU codec with the same spec, except for
// the sign of zeros in fp8_e4m3 (kernels/cuda/ops/scaled_encode.h).
//
// Encode() launches kernels and returns without waiting. The length of a payload stays on the GPU,
// because with topk and golomb_rice it depends on the values. All other payloads of a shard have
// the maximal length.
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
#define THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "client/gpu/dense_encode.h"
#include "client/gpu/sparse_encode.h"
#include "common/codec/codec.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class DeviceCodec {
 public:
  // Errors: those of MakeCodec; Unimplemented if the codec, or the codec of its sparse values, has
  // no GPU encoder.
  static absl::StatusOr<std::unique_ptr<const DeviceCodec>> Make(const CodecSpec& spec);

  // Returns the CPU codec with the same spec.
  const Codec& twin() const { return *twin_; }

  // Returns the length of the longest payload of COUNT values.
  size_t MaxPayloadBytes(size_t count) const { return twin_->MaxPayloadBytes(count); }
  // Returns whether all payloads of COUNT values have that length.
  bool HasOneLength(size_t count) const;
  // Returns the bytes of workspace for Encode(). A workspace serves one stream at a time.
  size_t WorkspaceBytes(size_t count) const;
  // Returns the offset of the codes in a payload of COUNT values. Number formats are encoded at
  // memory bandwidth only if the codes begin at a multiple of 16 bytes.
  size_t CodesOffset(size_t count) const;

  // Launches the encoding of v = residual + gradient to OUT and sets the residual to v minus the
  // decoded payload. If RESIDUAL is empty, encodes the gradient. Writes the length of the payload
  // to SIZE. THRESHOLD is one word per shard, initially 0, with which topk predicts its next
  // threshold; it may be null if RESIDUAL is empty.
  //
  // REQUIRES: all arrays and words are in GPU memory; the values are finite and fewer than 2^30;
  // WORKSPACE has WorkspaceBytes(count) bytes and begins at a multiple of 256; OUT has
  // MaxPayloadBytes(count) bytes.
  kernels::cuda::Status Encode(std::span<const float> gradient, std::span<float> residual,
                               const RandomKeys& keys, uint32_t* threshold,
                               std::span<std::byte> workspace, std::span<std::byte> out,
                               uint32_t* size, const kernels::cuda::Stream& stream) const;

 private:
  DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin);

  // Returns whether shards of COUNT values are sent dense, like the twin does if a sparse payload
  // would not be shorter.
  bool SendsDense(size_t count) const;

  const std::unique_ptr<const Codec> twin_;
  const DenseEncoder dense_;  // of all values, or of the sent ones
  const std::optional<SparseEncoder> sparse_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
