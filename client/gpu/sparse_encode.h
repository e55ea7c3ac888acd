// SparseEncoder writes sparse payloads (topk and randomk; common/codec/sparse/sparse_payload.h) on
// a GPU. It selects the indices to send, gathers their values, encodes the values with a dense
// codec, and encodes the indices.
//
// With error feedback, the residual keeps the encoding error of each sent value. Immutable.
// Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_
#define THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/gpu/codebook_encode.h"
#include "client/gpu/dense_encode.h"
#include "common/codec/codec.h"
#include "common/codec/sparse/sparse_payload.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class SparseEncoder {
 public:
  // REQUIRES: the codec of SPEC is sparse, and MakeCodec(spec) succeeds.
  explicit SparseEncoder(const CodecSpec& spec) : spec_(spec), format_(*RowOf(spec.id).sparse) {}

  // Returns true if the codec sends a dense payload whenever a sparse payload would not be shorter.
  bool FallsBack() const { return CodesIndices(); }
  // Returns true if all payloads of a shard have the same length.
  bool HasOneLength() const { return !UsesGolombRice(); }

  // In the functions below, VALUES is the encoder of the sent values.

  // The two functions below return sizes in bytes, for a shard of COUNT values. CodesOffset returns
  // the offset at which the codes of the sent values begin in the payload. WorkspaceBytes returns
  // the size of the workspace.
  size_t CodesOffset(size_t count, const DenseEncoder& values) const;
  size_t WorkspaceBytes(size_t count, const DenseEncoder& values) const;

  // Launches the encoding. The payload is written to call.out and its length to SIZE. THRESHOLD is
  // the shard's threshold prediction (kernels/cuda/ops/top_k.h); it is not used if there is no
  // residual. REQUIRES: the gradient is not empty; the shard does not fall back to a dense payload.
  kernels::cuda::Status Encode(const DenseEncoder& values, const DeviceCall& call,
                               uint32_t* threshold, uint32_t* size) const;

 private:
  struct Workspace;

  // The offsets of the parts of a payload, in bytes.
  struct Parts {
    SparseHead head;
    size_t values = 0;
    size_t indices = 0;
    size_t end = 0;  // the length of the longest payload
  };

  Parts PartsOf(size_t count, uint64_t draw, const DenseEncoder& values) const;
  bool CodesIndices() const { return format_.indices == SparseFormat::Indices::kCoded; }
  bool UsesGolombRice() const { return CodesIndices() && spec_.indices == IndexCoder::kGolombRice; }
  // Writes the head of the payload and the head of the encoded values within the payload.
  kernels::cuda::Status WriteHeads(const Parts& parts, const DenseEncoder& values,
                                   const DeviceCall& call, uint32_t* size) const;
  // SelectLargest selects the indices of the largest magnitudes, SelectRandom random indices. Both
  // gather the values at these indices.
  kernels::cuda::Status SelectLargest(const DeviceCall& call, uint32_t* threshold,
                                      const Workspace& work) const;
  kernels::cuda::Status SelectRandom(const DeviceCall& call, const Workspace& work) const;
  kernels::cuda::Status EncodeIndices(const DeviceCall& call, size_t offset, const Workspace& work,
                                      uint32_t* size) const;

  const CodecSpec spec_;
  const SparseFormat& format_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_
