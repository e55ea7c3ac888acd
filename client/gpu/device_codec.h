// DeviceCodec is a codec (common/codec/codec.h) whose gradients, residuals and payloads are in GPU
// memory. Its payloads and residuals equal those of the CPU codec with the same spec, except for
// the sign of zeros in fp8_e4m3 (kernels/cuda/ops/scaled_encode.h).
//
// Encode() launches kernels and returns without waiting. It writes the length of the payload to GPU
// memory, because the length depends on the values for topk with golomb_rice. A codec of the
// low-rank family has no kernels: Encode() copies the gradient and the residual to the host, waits,
// and encodes them with the CPU codec.
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
#define THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/gpu/dense_encode.h"
#include "client/gpu/sparse_encode.h"
#include "common/codec/codec.h"
#include "common/codec/table.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Returns Unimplemented if the dense codec of ROW has no GPU encoder.
absl::Status CheckDeviceEncoder(const CodecRow& row);

class DeviceCodec {
 public:
  // Makes the GPU codec with the spec SPEC. Errors: those of MakeCodec; Unimplemented if the codec,
  // or the value codec of a sparse or low-rank codec, has no GPU encoder.
  static absl::StatusOr<std::unique_ptr<const DeviceCodec>> Make(const CodecSpec& spec);

  // Returns the CPU codec with the same spec.
  const Codec& twin() const { return *twin_; }

  // Returns the length of the longest payload of COUNT values, in bytes.
  size_t MaxPayloadBytes(size_t count) const { return twin_->MaxPayloadBytes(count); }
  // Returns true if all payloads of COUNT values have the length MaxPayloadBytes(count).
  bool HasOneLength(size_t count) const;
  // Returns the size of Encode()'s workspace for COUNT values, in bytes. Only one stream at a time
  // may use a workspace.
  size_t WorkspaceBytes(size_t count) const;
  // Returns the offset of the codes in a payload of COUNT values, in bytes. Encoding to a number
  // format reaches the memory bandwidth only if the address of the codes is a multiple of 16 bytes.
  size_t CodesOffset(size_t count) const;

  // Launches the encoding of v = residual + gradient and sets the residual to v minus the decoded
  // payload. If RESIDUAL is empty, encodes the gradient alone. Writes the payload to OUT and its
  // length to SIZE. THRESHOLD points to a word that belongs to the shard, initially 0, in which
  // topk stores its prediction of the shard's next threshold. MEMORY is the shard's state for
  // codecs that encode on the host. Both may be null if RESIDUAL is empty; powersgd then has no
  // warm start.
  //
  // REQUIRES: all arrays and words are in GPU memory; the values are finite and fewer than 2^30;
  // WORKSPACE has WorkspaceBytes(count) bytes and begins at a multiple of 256 bytes; OUT has
  // MaxPayloadBytes(count) bytes.
  kernels::cuda::Status Encode(std::span<const float> gradient, std::span<float> residual,
                               const RandomKeys& keys, uint32_t* threshold, CodecMemory* memory,
                               std::span<std::byte> workspace, std::span<std::byte> out,
                               uint32_t* size, const kernels::cuda::Stream& stream) const;

 private:
  DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin);

  // Returns true if shards of COUNT values are sent as dense payloads. Like the CPU codec, a topk
  // codec sends a dense payload if a sparse payload would not be shorter.
  bool SendsDense(size_t count) const;
  // Encode() for a codec without kernels.
  kernels::cuda::Status EncodeOnHost(std::span<const float> gradient, std::span<float> residual,
                                     const RandomKeys& keys, CodecMemory* memory,
                                     std::span<std::byte> out, uint32_t* size,
                                     const kernels::cuda::Stream& stream) const;

  const std::unique_ptr<const Codec> twin_;
  const bool encodes_on_host_;
  const DenseEncoder dense_;  // encodes all values or, for a sparse codec, the sent ones
  const std::optional<SparseEncoder> sparse_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
