// CodebookEncoder writes the body of a payload whose codec has a codebook
// (common/codec/codebook/codebook.h) on a GPU: adds the gradient to the residual, fits the
// codebook, computes and packs the codes, and subtracts the decoded values from the residual. QSGD
// does all of this in one kernel.
//
// Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_
#define THINWIRE_CLIENT_GPU_CODEBOOK_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/codebook/codebook.h"
#include "common/codec/codec.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// The arguments of one encoding. All memory is on the GPU.
struct DeviceCall {
  std::span<const float> gradient;
  std::span<float> residual;  // as long as the gradient, or empty: encodes the gradient itself
  RandomKeys keys;
  std::byte* workspace;  // begins at a multiple of 16 bytes
  std::byte* out;        // beginning of the payload or its body
  const kernels::cuda::Stream& stream;
};

class CodebookEncoder {
 public:
  // FORMAT outlives the encoder. REQUIRES: the fit of FORMAT is not kHostOnly; FORMAT accepts the
  // head of SETTINGS.
  CodebookEncoder(const CodebookFormat& format, const CodebookSettings& settings);

  // Returns the bytes at the beginning of the body. Bytes that depend on the values are
  // placeholders; Encode() overwrites them.
  std::vector<std::byte> Head() const;
  const CodebookShape& shape() const { return shape_; }
  // Returns the workspace for COUNT values, in bytes.
  size_t WorkspaceBytes(size_t count) const;

  // Launches the encoding to call.out. REQUIRES: Head() was written there earlier on the same
  // stream.
  kernels::cuda::Status Encode(const DeviceCall& call) const;

 private:
  struct Workspace;

  // The functions below encode VALUES: the residual after adding the gradient, or the gradient if
  // there is no residual.

  // Fits the codebook: writes its numbers to the body, and the lookup table and thresholds to the
  // workspace.
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

  // Write the packed codes of one bit, or of several, and subtract the decoded values from the
  // residual.
  kernels::cuda::Status WriteSigns(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const;
  kernels::cuda::Status WriteCodes(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const;

  kernels::cuda::Status EncodeQsgd(const DeviceCall& call) const;

  // Return whether the codebook consists of mean magnitudes, or of (refined) percentiles.
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
