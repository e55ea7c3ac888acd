// SparseEncoder: writes topk and randomk payloads on the device
// (common/codec/sparse/sparse_payload.h).
//
//   choose the indices and gather their values | encode these | code the indices
//
// With feedback each value that is sent leaves in the residual what its encoding lost. Immutable.
// Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_
#define THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/gpu/dense_encode.h"
#include "client/gpu/device_call.h"
#include "common/codec/codec.h"
#include "common/codec/sparse/sparse_payload.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class SparseEncoder {
 public:
  // REQUIRES: spec.id is a sparse codec, and MakeCodec(spec) succeeds.
  explicit SparseEncoder(const CodecSpec& spec) : spec_(spec), format_(*RowOf(spec.id).sparse) {}

  // Whether a shard whose sparse payload is no shorter is sent dense.
  bool FallsBack() const { return CodesIndices(); }
  // Whether no payload of a shard is longer than another.
  bool HasOneLength() const { return !UsesGolombRice(); }

  // For the rest: VALUES is the encoder of the spec's value codec.

  size_t CodesOffset(size_t count, const DenseEncoder& values) const;
  size_t WorkspaceBytes(size_t count, const DenseEncoder& values) const;

  // Launches what writes the payload and its length. COLLECT_FROM is the shard's; none is needed
  // without a residual. REQUIRES: in topk the payload is to be sparse, and there are values.
  kernels::cuda::Status Encode(const DenseEncoder& values, const DeviceCall& call,
                               uint32_t* collect_from, uint32_t* size) const;

 private:
  struct Workspace;
  // Where the parts of a payload begin.
  struct Parts {
    SparseHead head;
    size_t values = 0;
    size_t indices = 0;
    size_t end = 0;  // at most
  };

  Parts PartsOf(size_t count, uint64_t draw, const DenseEncoder& values) const;
  bool CodesIndices() const { return format_.indices == SparseFormat::Indices::kCoded; }
  bool UsesGolombRice() const { return CodesIndices() && spec_.indices == IndexCoder::kGolombRice; }
  kernels::cuda::Status PutHeads(const Parts& parts, const DenseEncoder& values,
                                 const DeviceCall& call, uint32_t* size) const;
  // Chooses, and gathers what is to be sent.
  kernels::cuda::Status Choose(const DeviceCall& call, uint32_t* collect_from,
                               const Workspace& work) const;
  kernels::cuda::Status CodeIndices(const DeviceCall& call, size_t offset, const Workspace& work,
                                    uint32_t* size) const;

  const CodecSpec spec_;
  const SparseFormat& format_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_SPARSE_ENCODE_H_
