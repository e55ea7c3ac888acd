// DeviceCodec is a codec (common/codec/codec.h) whose gradients, residuals and payloads are in GPU
// memory. Its payloads and residuals equal those of the CPU codec with the same spec, except for
// the sign of zeros in fp8_e4m3 (kernels/cuda/ops/scaled_encode.h).
//
// Encode() launches kernels and returns without waiting. It writes the length of the payload to GPU
// memory, because the length depends on the values for topk with golomb_rice.
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
#include "client/gpu/low_rank_encode.h"
#include "client/gpu/sparse_encode.h"
#include "common/codec/codec.h"
#include "common/codec/table.h"
#include "common/model/matrix_run.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Returns Unimplemented if the dense codec of ROW has no GPU encoder.
absl::Status CheckDeviceEncoder(const CodecRow& row);

// The position of one shard in its matrix, and the state that a codec keeps between its calls: the
// CodecMemory of a shard on a GPU.
struct DeviceCodecMemory {
  // topk with a residual: a word in GPU memory, initially 0, in which topk stores its prediction of
  // the shard's next threshold.
  uint32_t* threshold = nullptr;
  // powersgd: the position of the values in their matrix, set by the caller.
  MatrixRun matrix;
  // powersgd: the matrix Q with which the next power iteration begins; empty: a random one.
  kernels::cuda::DeviceBuffer<float> warm_start;
};

class DeviceCodec {
 public:
  // Makes the GPU codec with the spec SPEC. Errors: those of MakeCodec; Unimplemented if the codec,
  // or the value codec of a sparse or low-rank codec, has no GPU encoder.
  static absl::StatusOr<std::unique_ptr<const DeviceCodec>> Make(const CodecSpec& spec);

  // Returns the CPU codec with the same spec.
  const Codec& twin() const { return *twin_; }

  // In the functions below, COUNT is the number of the shard's values, and MATRIX is their position
  // in their matrix, on which payloads of powersgd depend.

  // Returns the length of the longest payload, in bytes.
  size_t MaxPayloadBytes(size_t count, const MatrixRun& matrix) const;
  // Returns true if all payloads have the length MaxPayloadBytes().
  bool HasOneLength(size_t count) const;
  // Returns the size of Encode()'s workspace, in bytes. Only one stream at a time may use a
  // workspace.
  size_t WorkspaceBytes(size_t count, const MatrixRun& matrix) const;
  // Returns the offset of the codes in a payload, in bytes. Encoding to a number format reaches the
  // memory bandwidth only if the address of the codes is a multiple of 16 bytes.
  size_t CodesOffset(size_t count, const MatrixRun& matrix) const;

  // Launches the encoding of v = residual + gradient and sets the residual to v minus the decoded
  // payload. If RESIDUAL is empty, encodes the gradient alone. Writes the payload to OUT and its
  // length to SIZE. MEMORY is new or was passed to earlier calls for this shard only.
  //
  // REQUIRES: all arrays and words are in GPU memory; the values are finite and fewer than 2^30;
  // WORKSPACE has WorkspaceBytes() bytes and begins at a multiple of 256 bytes; OUT has
  // MaxPayloadBytes() bytes.
  kernels::cuda::Status Encode(std::span<const float> gradient, std::span<float> residual,
                               const RandomKeys& keys, DeviceCodecMemory& memory,
                               std::span<std::byte> workspace, std::span<std::byte> out,
                               uint32_t* size, const kernels::cuda::Stream& stream) const;

 private:
  DeviceCodec(const CodecSpec& spec, std::unique_ptr<const Codec> twin);

  // Returns true if the codec sends shards of COUNT values as sparse payloads. Like the CPU codec, a
  // topk codec sends a dense payload if a sparse payload would not be shorter.
  bool SendsSparse(size_t count) const;
  // Returns the encoder of a shard that is sent as a low-rank payload, or nullopt if it is not.
  std::optional<LowRankEncoder> LowRankOf(size_t count, const MatrixRun& matrix) const;

  const std::unique_ptr<const Codec> twin_;
  const size_t powersgd_rank_;  // 0: the codec is not powersgd
  const DenseEncoder dense_;  // encodes all values or, for another codec, the sent ones or P and Q
  const std::optional<SparseEncoder> sparse_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_CODEC_H_
