// Decoders that apply payloads and ULP deltas to values in GPU memory.
//
// The host parses a payload in one pass and writes staged data: a form of the payload in which GPU
// threads find every element at a known position. The staged data is about as long as the payload,
// except for powersgd, which is decoded on the host:
//
//   payload          staged data
//   number format    the encoded numbers
//   codebook         the table of each group (qsgd: its largest magnitude), then the packed codes
//   topk, randomk    the indices and decoded values, 8 bytes per entry
//   powersgd         the decoded values, 4 bytes each
//   ULP delta        an index and a difference for each changed value, 8 bytes, or a
//                    difference for every value, 4 bytes, whichever is shorter in total
//
// The caller copies the staged data from pinned memory to the GPU. The pinned memory must stay
// valid until the copy has run (see PayloadStage):
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
  // Makes a decoder that multiplies the values of PAYLOAD by SCALE. PAYLOAD must outlive the
  // decoder. REQUIRES: PAYLOAD is dense.
  DenseDecoder(const CheckedPayload& payload, float scale);

  size_t staged_bytes() const { return TableBytes() + code_bytes_; }
  size_t workspace_bytes() const { return Unpacks() ? count_ : 0; }
  void Stage(std::span<std::byte> staged) const;

  // Launches out = scale * decode(payload) or, if ADDS is true, out += scale * decode(payload).
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, bool adds,
                               const kernels::cuda::Stream& stream) const;

 private:
  // Returns true if the only number of a group of values is its largest magnitude.
  bool HasLargestMagnitudes() const;
  // Returns true if the GPU first unpacks the codes, to one byte per code.
  bool Unpacks() const;
  // TableFloats returns the number of floats in the staged tables. TableBytes returns the size of
  // the staged tables in bytes, rounded up to a multiple of 16; the staged codes begin at this
  // offset.
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
  const CodebookFormat* const format_;  // the codec's codebook format; null for number formats
  CodebookHead head_ = {};
  CodebookShape shape_ = {};
  size_t codes_offset_ = 0;  // offset of the codes, which end the payload
  size_t code_bytes_ = 0;
};

class DeviceDecoder {
 public:
  // Makes a decoder that multiplies the values of PAYLOAD by SCALE. PAYLOAD must outlive the
  // decoder. REQUIRES: payload.count() < 2^31.
  explicit DeviceDecoder(const CheckedPayload& payload, float scale = 1.0f);

  size_t staged_bytes() const;
  // Returns the size of the GPU workspace for one call of Decode or DecodeAdd, in bytes.
  size_t workspace_bytes() const;

  // Writes the staged data to STAGED, in host memory. REQUIRES: staged.size() == staged_bytes();
  // STAGED begins at a multiple of 16 bytes.
  void Stage(std::span<std::byte> staged) const;

  // Decode and DecodeAdd REQUIRE: STAGED contains the staged data; WORKSPACE has workspace_bytes()
  // bytes; both are in GPU memory and begin at multiples of 256 bytes; OUT or SUM has
  // payload.count() values in GPU memory.

  // Launches out = scale * decode(payload).
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, const kernels::cuda::Stream& stream) const;
  // Launches sum += scale * decode(payload).
  kernels::cuda::Status DecodeAdd(std::span<const std::byte> staged, std::span<std::byte> workspace,
                                  std::span<float> sum, const kernels::cuda::Stream& stream) const;

 private:
  // The entries of a sparse payload within the staged data.
  struct Entries {
    std::span<const uint32_t> indices;
    std::span<const float> values;
  };
  Entries EntriesOf(std::span<const std::byte> staged) const;

  const CheckedPayload& payload_;
  const float scale_;
  const std::optional<DenseDecoder> dense_;  // nullopt if the payload is not dense
  const bool host_decodes_;   // the host decodes the payload, and the GPU gets floats
  const size_t entry_count_;  // entries of a sparse payload; else 0
};

// Applies a ULP delta (common/codec/delta/ulp_delta.h) to values in GPU memory. The host decodes
// the delta, because its codes have variable lengths and must be decoded sequentially.
class DeviceUlpDelta {
 public:
  // DELTA must outlive this object.
  explicit DeviceUlpDelta(const UlpDelta& delta) : delta_(delta) {}

  size_t staged_bytes() const;

  // Writes the staged data to STAGED, in host memory. REQUIRES: staged.size() == staged_bytes();
  // STAGED begins at a multiple of 4 bytes.
  void Stage(std::span<std::byte> staged) const;

  // Launches the application of the delta to VALUES. REQUIRES: STAGED contains the staged data, is
  // in GPU memory and begins at a multiple of 256 bytes; VALUES has delta.count() values in GPU
  // memory.
  kernels::cuda::Status Apply(std::span<const std::byte> staged, std::span<float> values,
                              const kernels::cuda::Stream& stream) const;

 private:
  // Returns true if a difference for every value takes fewer bytes than an index and a difference
  // for each changed value.
  bool StagesAll() const { return delta_.count() < 2 * delta_.entry_count(); }

  const UlpDelta& delta_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_
