// DeviceCodec: a codec (common/codec/codec.h) whose gradients, residuals and payloads lie on a GPU.
// It writes the payloads that the codec of the same spec writes, and leaves the same residuals, but
// for the sign of a zero in fp8_e4m3 (kernels/cuda/scaled_encode.h).
//
// A call launches and returns: the host neither waits nor learns anything of the values, so a
// payload's length is left on the device, too. With topk and golomb_rice it depends on the values;
// all other payloads of a shard are as long as the longest.
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

  // The codec on the host that this is the twin of.
  const Codec& twin() const { return *twin_; }

  size_t MaxPayloadBytes(size_t count) const { return twin_->MaxPayloadBytes(count); }
  // Whether all payloads of COUNT values have that many bytes.
  bool HasOneLength(size_t count) const;
  // The memory on the device that a call works in; it serves one stream at a time.
  size_t WorkspaceBytes(size_t count) const;
  // Where in a payload of COUNT values its codes begin. Where that lies at a multiple of 16 bytes,
  // a number format is written as fast as a copy.
  size_t CodesOffset(size_t count) const;

  // Launches what writes the payload to OUT and its length to SIZE. RESIDUAL empty: of GRADIENT.
  // Else of v = residual + gradient, and the residual becomes what was lost of v. COLLECT_FROM is
  // one word for each shard, 0 at first, by which topk finds sooner what it found before; none is
  // needed without a residual.
  //
  // REQUIRES: all spans and words are on the device; the values are finite and fewer than 2^30;
  // WORKSPACE begins at a multiple of 256 and has WorkspaceBytes(count), OUT has
  // MaxPayloadBytes(count).
  kernels::cuda::Status Encode(std::span<const float> gradient, std::span<float> residual,
                               const RandomKeys& keys, uint32_t* collect_from,
                               std::span<std::byte> workspace, std::span<std::byte> out,
                               uint32_t* size, const kernels::cuda::Stream& stream) const;

 private:
  DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin);

  bool SendsDense(size_t count) const;

  const std::unique_ptr<const Codec> twin_;
  const DenseEncoder dense_;  // of all values, or of those that are sent
  const std::optional<SparseEncoder> sparse_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
