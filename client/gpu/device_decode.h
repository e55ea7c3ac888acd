// DeviceDecoder: decodes a payload into values that lie on a GPU.
//
// What crosses the bus are not the payload's bytes but what the host makes of them in one pass,
// which is as short, or nearly, and needs no search on the device:
//
//   payload          staged
//   number format    its codes
//   codebook         the table of each group, or in qsgd its one number; the packed codes
//   topk, randomk    the indices and the decoded values, 8 bytes for each that was sent
//
// The caller copies it from pinned memory, which must stay until the copy is done:
//
//   const DeviceDecoder decoder(payload);
//   decoder.Stage(pinned.first(decoder.staged_bytes()));
//   CopyBytesToDevice(pinned..., on_device..., stream);
//   decoder.Decode(on_device, workspace, values, stream);
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_
#define THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "client/gpu/dense_decode.h"
#include "common/codec/payload.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class DeviceDecoder {
 public:
  // Decodes SCALE times the values of PAYLOAD, which outlives the decoder. REQUIRES:
  // payload.count() < 2^31.
  explicit DeviceDecoder(const CheckedPayload& payload, float scale = 1.0f);

  size_t staged_bytes() const;
  // On the device, for one call at a time.
  size_t workspace_bytes() const;

  // REQUIRES: staged.size() == staged_bytes(), from a multiple of 16 bytes on.
  void Stage(std::span<std::byte> staged) const;

  // REQUIRES, for both: STAGED is what Stage wrote and, like WORKSPACE of workspace_bytes(), lies
  // on the device from a multiple of 256 bytes on; out or sum has COUNT values there.

  // out = scale * decode(payload)
  kernels::cuda::Status Decode(std::span<const std::byte> staged, std::span<std::byte> workspace,
                               std::span<float> out, const kernels::cuda::Stream& stream) const;
  // sum += scale * decode(payload)
  kernels::cuda::Status DecodeAdd(std::span<const std::byte> staged, std::span<std::byte> workspace,
                                  std::span<float> sum, const kernels::cuda::Stream& stream) const;

 private:
  // Of a sparse payload, on the device.
  struct Entries {
    std::span<const uint32_t> indices;
    std::span<const float> values;
  };
  Entries EntriesOf(std::span<const std::byte> staged) const;

  const CheckedPayload& payload_;
  const float scale_;
  const std::optional<DenseDecoder> dense_;  // else it is sparse
  const size_t sent_count_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_DECODE_H_
