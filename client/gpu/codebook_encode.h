// CodebookEncoder: writes the body of payloads whose codec has a codebook (common/codec/codebook.h)
// on the device. Passes over the values, one behind the other: add, fit the numbers, give codes,
// pack them, take from the residual what they stand for. qsgd does it all in one.
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_
#define THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client/gpu/device_call.h"
#include "common/codec/codebook.h"
#include "common/codec/codec.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class CodebookEncoder {
 public:
  // REQUIRES: Codebook::IsOf(spec.id), and MakeCodec(spec) passes.
  explicit CodebookEncoder(const CodecSpec& spec);

  // What the body begins with, as far as the host knows it; the rest of it is overwritten.
  std::vector<std::byte> Head() const;
  const Codebook& book() const { return book_; }
  size_t WorkspaceBytes(size_t count) const;

  // Launches what writes the body to call.out, where the head is already.
  kernels::cuda::Status Encode(const DeviceCall& call) const;

 private:
  struct Workspace;

  // For these VALUES are the residual, GRADIENT being added to it, or GRADIENT itself.
  kernels::cuda::Status Fit(const DeviceCall& call, std::span<const float> values,
                            const Workspace& work) const;
  kernels::cuda::Status FitMeans(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const;
  kernels::cuda::Status FitSteps(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const;
  kernels::cuda::Status FitTable(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const;
  kernels::cuda::Status FitRatios(const DeviceCall& call, std::span<const float> values,
                                  const Workspace& work) const;
  kernels::cuda::Status FitThreshold(const DeviceCall& call, const Workspace& work) const;
  kernels::cuda::Status PutSigns(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const;
  kernels::cuda::Status PutCodes(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const;
  kernels::cuda::Status EncodeQsgd(const DeviceCall& call) const;

  bool FitsMeans() const;
  bool FitsTable() const;
  std::byte* Numbers(const DeviceCall& call) const { return call.out + book_.NumbersOffset(0); }
  std::byte* Packed(const DeviceCall& call) const;

  const CodecId id_;
  const float threshold_;
  const int levels_;
  const Codebook::Head settings_;
  const Codebook book_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_
