// CodebookEncoder: writes the body of payloads whose codec has a codebook
// (common/codec/codebook/codebook.h) on the device. Passes over the values, one behind the other:
// add, fit the numbers, give codes, pack them, take from the residual what they stand for. qsgd
// does it all in one.
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_
#define THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client/gpu/device_call.h"
#include "common/codec/codebook/codebook.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

class CodebookEncoder {
 public:
  // FORMAT outlives the encoder. REQUIRES: the fit of FORMAT is not kHostOnly; FORMAT accepts the
  // head of SETTINGS.
  CodebookEncoder(const CodebookFormat& format, const CodebookSettings& settings);

  // What the body begins with, as far as the host knows it; the rest of it is overwritten.
  std::vector<std::byte> Head() const;
  const CodebookShape& shape() const { return shape_; }
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

  // Whether a group's number is the mean of some magnitudes, or percentiles that may be refined.
  bool FitsMeans() const;
  bool FitsTable() const;
  std::byte* Numbers(const DeviceCall& call) const { return call.out + shape_.NumbersOffset(0); }
  std::byte* Packed(const DeviceCall& call) const;

  const CodebookFit fit_;
  const CodebookSettings settings_;
  const CodebookShape shape_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_
