// Decoders that apply payloads and ULP deltas to values in GPU memory.
//
// The host parses a payload in one pass and stages data that the GPU can use without searching. The
// staged data has about the length of the payload:
//
//   payload          staged data
//   number format    the codes
//   codebook         the table of each group (qsgd: its number), then the packed codes
//   topk, randomk    the indices and decoded values, 8 bytes per entry
//   ULP delta        the indices and differences, 8 bytes per entry, or a difference for each
//                    value, 4 bytes, whichever is shorter
//
// The caller copies the staged data from pinned memory, which must stay valid until the copy has
// run (see PayloadStage):
//
//   const DeviceDecoder decoder(payload);
//   decoder.Stage(pinned.first(decoder.staged_bytes()));
//   CopyBytesToDevice(pinned..., on_device..., stream);
//   decoder.Decode(on_device, workspace, values, stream);
//
// All classes are immutable and thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_
#define THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/codec/codebook/codebook.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/payload.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// The part of a DeviceDecoder that decodes dense payloads.
class DenseDecoder {
 public:
  // Decodes SCALE times the values of PAYLOAD, which outlives the decoder. REQUIRES: PAYLOAD is
  // dense.
  DenseDecoder(const CheckedPayload& payload, float scale);

  size_t staged_bytes() const { return TableBytes() + code_bytes_; }
  size_t workspace_bytes() const { return Unpacks() ? count_ : 0; }
  void Stage(std::span<std::byte> staged) const;

  // Launches out = scale * decode(payload), or out += ... if ADDS.
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, bool adds,
                               const kernels::cuda::Stream& stream) const;

 private:
  bool HasRandomLevels() const;
  // Returns whether the GPU first unpacks the codes to a byte each.
  bool Unpacks() const;
  // Return the number of floats in the staged tables, and the offset of the staged codes, which
  // follow the tables at a multiple of 16 bytes.
  size_t TableFloats() const;
  size_t TableBytes() const;
  void StageTables(std::span<float> tables) const;
  kernels::cuda::Status DecodeNumbers(const std::byte* codes, std::span<float> out, bool adds,
                                      const kernels::cuda::Stream& stream) const;
  kernels::cuda::Status DecodeQsgd(const std::byte* numbers, const std::byte* codes,
                                   std::span<float> out, bool adds,
                                   const kernels::cuda::Stream& stream) const;

  const CheckedPayload& payload_;
  const size_t count_;
  const float scale_;
  const CodebookFormat* const format_;  // null: a number format
  CodebookHead head_ = {};
  CodebookShape shape_ = {};
  size_t codes_offset_ = 0;  // in the payload; the codes reach to its end
  size_t code_bytes_ = 0;
};

class DeviceDecoder {
 public:
  // Decodes SCALE times the values of PAYLOAD, which outlives the decoder. REQUIRES:
  // payload.count() < 2^31.
  explicit DeviceDecoder(const CheckedPayload& payload, float scale = 1.0f);

  size_t staged_bytes() const;
  // Returns the bytes of GPU workspace for one call.
  size_t workspace_bytes() const;

  // Writes the staged data. REQUIRES: staged.size() == staged_bytes(); STAGED begins at a multiple
  // of 16 bytes.
  void Stage(std::span<std::byte> staged) const;

  // REQUIRES, for Decode and DecodeAdd: STAGED (the staged data) and WORKSPACE (of
  // workspace_bytes()) are in GPU memory and begin at multiples of 256 bytes; OUT or SUM has
  // payload.count() values in GPU memory.

  // Launches out = scale * decode(payload).
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, const kernels::cuda::Stream& stream) const;
  // Launches sum += scale * decode(payload).
  kernels::cuda::Status DecodeAdd(std::span<const std::byte> staged, std::span<std::byte> workspace,
                                  std::span<float> sum, const kernels::cuda::Stream& stream) const;

 private:
  // The staged entries of a sparse payload.
  struct Entries {
    std::span<const uint32_t> indices;
    std::span<const float> values;
  };
  Entries EntriesOf(std::span<const std::byte> staged) const;

  const CheckedPayload& payload_;
  const float scale_;
  const std::optional<DenseDecoder> dense_;  // nullopt: the payload is sparse
  const size_t entry_count_;                 // of a sparse payload
};

// Applies a ULP delta (common/codec/delta/ulp_delta.h) to values in GPU memory. Its code has
// variable length and is decoded sequentially, so the host does it.
class DeviceUlpDelta {
 public:
  // DELTA outlives the object.
  explicit DeviceUlpDelta(const UlpDelta& delta) : delta_(delta) {}

  size_t staged_bytes() const;

  // Writes the staged data. REQUIRES: staged.size() == staged_bytes(); STAGED begins at a multiple
  // of 4 bytes.
  void Stage(std::span<std::byte> staged) const;

  // Launches the change of VALUES. REQUIRES: STAGED (the staged data) is in GPU memory and begins
  // at a multiple of 256 bytes; VALUES has delta.count() values in GPU memory.
  kernels::cuda::Status Apply(std::span<const std::byte> staged, std::span<float> values,
                              const kernels::cuda::Stream& stream) const;

 private:
  // Returns whether a difference for each value is shorter than a list of entries.
  bool StagesAll() const { return delta_.count() < 2 * delta_.entry_count(); }

  const UlpDelta& delta_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_
