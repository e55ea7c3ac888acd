// DenseEncoder writes dense payloads on a GPU: a whole payload, or the values within a sparse or a
// low-rank payload.
//
//   payload = head | body      the host computes the head: codec id and settings
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_
#define THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "client/gpu/codebook_encode.h"
#include "common/codec/codec.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class DenseEncoder {
 public:
  // REQUIRES: the codec of SPEC is dense and has a GPU encoder, and MakeCodec(spec) succeeds.
  explicit DenseEncoder(const CodecSpec& spec);

  // Returns the head with which every payload begins.
  std::span<const std::byte> head() const { return head_; }

  // The three functions below return sizes in bytes, for COUNT values: the length of the payload,
  // the offset at which the codes begin in the payload, and the size of the workspace.
  size_t PayloadBytes(size_t count) const;
  size_t CodesOffset(size_t count) const;
  size_t WorkspaceBytes(size_t count) const;

  // Launches the encoding of the body and of the bytes of the head that depend on the values.
  // REQUIRES: head() was written to call.out earlier on the same stream.
  kernels::cuda::Status EncodeBody(const DeviceCall& call) const;
  // Launches the decoding of the values that the last EncodeBody() encoded. OUT may be the gradient
  // of that call. REQUIRES: CALL is the argument of that call; its workspace is unchanged.
  kernels::cuda::Status DecodeBody(const DeviceCall& call, std::span<float> out) const;

 private:
  const CodecId id_;
  const std::optional<CodebookEncoder> codebook_;  // codebook encoder; nullopt for number formats
  std::vector<std::byte> head_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DENSE_ENCODE_H_
