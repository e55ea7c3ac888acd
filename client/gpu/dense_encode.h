// DenseEncoder: writes dense payloads on the device, whole ones or those within a sparse one.
//
//   payload = head | body      the head is the codec's byte and its settings, which the host knows
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_
#define THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "client/gpu/codebook_encode.h"
#include "client/gpu/device_call.h"
#include "common/codec/codec.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class DenseEncoder {
 public:
  // REQUIRES: IsDense(spec.id), the codec has a GPU encoder, and MakeCodec(spec) succeeds.
  explicit DenseEncoder(const CodecSpec& spec);

  std::span<const std::byte> head() const { return head_; }
  size_t PayloadBytes(size_t count) const;
  // Where in the payload the codes begin.
  size_t CodesOffset(size_t count) const;
  size_t WorkspaceBytes(size_t count) const;

  // Launches what writes the body, and what of the head depends on the values. REQUIRES: the head
  // is put to call.out earlier on the same stream.
  kernels::cuda::Status EncodeBody(const DeviceCall& call) const;

 private:
  const CodecId id_;
  const std::optional<CodebookEncoder> codebook_;  // else a number format
  std::vector<std::byte> head_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_
