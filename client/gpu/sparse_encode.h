// SparseEncoder writes sparse payloads (topk and randomk; common/codec/sparse/sparse_payload.h) on
// a GPU: selects indices and gathers their values, encodes the values with a dense codec, and
// encodes the indices.
//
// With error feedback, each sent value leaves its encoding error in the residual. Immutable.
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
  // REQUIRES: spec.id is a sparse codec, and MakeCodec(spec) succeeds.
  explicit SparseEncoder(const CodecSpec& spec) : spec_(spec), format_(*RowOf(spec.id).sparse) {}

  // Returns whether a shard is sent dense if its sparse payload would not be shorter.
  bool FallsBack() const { return CodesIndices(); }
  // Returns whether all payloads of a shard have the same length.
  bool HasOneLength() const { return !UsesGolombRice(); }

  // In the functions below, VALUES is the encoder of the spec's value codec, and COUNT is the
  // number of values of the shard.

  // Returns the offset in the payload, in bytes, of the codes of the sent values.
  size_t CodesOffset(size_t count, const DenseEncoder& values) const;
  // Returns the length in bytes of the workspace that Encode needs.
  size_t WorkspaceBytes(size_t count, const DenseEncoder& values) const;

  // Launches kernels that write the payload to call.out and its length in bytes to SIZE, both in
  // GPU memory. Does not wait for them. THRESHOLD is the shard's threshold prediction in GPU memory
  // (kernels/cuda/ops/top_k.h); it is not used without a residual. Errors: those of the launches.
  // REQUIRES: the gradient is not empty; the shard does not fall back to a dense payload.
  kernels::cuda::Status Encode(const DenseEncoder& values, const DeviceCall& call,
                               uint32_t* threshold, uint32_t* size) const;

 private:
  struct Workspace;

  // The offsets of the parts of a payload.
  struct Parts {
    SparseHead head;
    size_t values = 0;
    size_t indices = 0;
    size_t end = 0;  // of the longest payload
  };

  Parts PartsOf(size_t count, uint64_t draw, const DenseEncoder& values) const;
  bool CodesIndices() const { return format_.indices == SparseFormat::Indices::kCoded; }
  bool UsesGolombRice() const { return CodesIndices() && spec_.indices == IndexCoder::kGolombRice; }
  // Writes the heads of the payload and of the values within it.
  kernels::cuda::Status WriteHeads(const Parts& parts, const DenseEncoder& values,
                                   const DeviceCall& call, uint32_t* size) const;
  // These two functions select the indices to send and gather their values.
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
