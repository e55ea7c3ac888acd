// LowRankEncoder writes the low-rank payload of one shard (powersgd;
// common/codec/low_rank/power_sgd.h) on a GPU. It does one step of the power iteration, and encodes
// P and Q with a dense codec.
//
// With error feedback, it subtracts the product of the decoded P and Q from the residual.
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_LOW_RANK_ENCODE_H_
#define THINWIRE_CLIENT_GPU_LOW_RANK_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/gpu/codebook_encode.h"
#include "client/gpu/dense_encode.h"
#include "common/codec/low_rank/low_rank_payload.h"
#include "kernels/cuda/ops/row_products.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class LowRankEncoder {
 public:
  // VALUES encodes P and Q, and must outlive the encoder.
  LowRankEncoder(const LowRankHead& head, const DenseEncoder& values)
      : head_(head), values_(values) {}

  // The three functions below return sizes in bytes: the length of the payload, the offset at which
  // the codes of P begin in the payload, and the size of the workspace.
  size_t PayloadBytes() const;
  size_t CodesOffset() const;
  size_t WorkspaceBytes() const;

  // Launches the encoding. The payload is written to call.out and its length to SIZE. WARM_START is
  // the Q with which the power iteration begins. If its size is not that of Q, for example 0, the
  // iteration begins with the first Q. WARM_START receives the warm start of the shard's next step.
  kernels::cuda::Status Encode(const DeviceCall& call,
                               kernels::cuda::DeviceBuffer<float>& warm_start,
                               uint32_t* size) const;

 private:
  struct Workspace;

  kernels::cuda::ProductShape Shape() const;
  // Returns the offset of the encoded Q in the payload, in bytes.
  size_t OffsetOfQ() const;
  // Writes the head of the payload and the heads of the encoded P and Q.
  kernels::cuda::Status WriteHeads(const DeviceCall& call, uint32_t* size) const;
  // If WARM_START does not have the size of Q, replaces it by the first Q.
  kernels::cuda::Status PrepareWarmStart(kernels::cuda::DeviceBuffer<float>& warm_start,
                                         const kernels::cuda::Stream& stream) const;
  // Computes P and Q for the matrix of VALUES.
  kernels::cuda::Status Iterate(std::span<const float> values, std::span<float> warm_start,
                                const Workspace& work, const kernels::cuda::Stream& stream) const;
  // Encodes FACTOR, P or Q, at OFFSET. If CALL has a residual, replaces FACTOR by its decoded
  // values.
  kernels::cuda::Status EncodeFactor(const DeviceCall& call, std::span<float> factor, size_t offset,
                                     const Workspace& work) const;

  const LowRankHead head_;
  const DenseEncoder& values_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_LOW_RANK_ENCODE_H_
