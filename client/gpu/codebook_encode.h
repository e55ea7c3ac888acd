// CodebookEncoder writes the body of a payload whose codec has a codebook
// (common/codec/codebook/codebook.h) on a GPU. It adds the gradient to the residual, fits the
// codebook, computes and packs the codes, and subtracts the decoded values from the residual. QSGD
// needs only one kernel for all these steps.
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

// The arguments of one encoding. All arrays are in GPU memory.
struct DeviceCall {
  std::span<const float> gradient;
  std::span<float> residual;  // as long as the gradient; empty if there is no error feedback
  RandomKeys keys;
  std::byte* workspace;  // its address is a multiple of 16
  std::byte* out;        // receives the payload, or only its body
  const kernels::cuda::Stream& stream;
};

class CodebookEncoder {
 public:
  // FORMAT must outlive the encoder. REQUIRES: a GPU can fit the codebook, so FORMAT.fit() is not
  // kHostOnly; the head in SETTINGS is valid for FORMAT.
  CodebookEncoder(const CodebookFormat& format, const CodebookSettings& settings);

  // Returns the bytes at the beginning of the body. Encode() overwrites the bytes that depend on
  // the values; until then they are placeholders.
  std::vector<std::byte> Head() const;
  const CodebookShape& shape() const { return shape_; }
  // Returns the size of the workspace for COUNT values, in bytes.
  size_t WorkspaceBytes(size_t count) const;

  // Launches the encoding; the result is written to call.out. REQUIRES: Head() was written to
  // call.out earlier on the same stream.
  kernels::cuda::Status Encode(const DeviceCall& call) const;
  // Launches the decoding of the values that the last Encode() encoded. OUT may be the gradient of
  // that call. REQUIRES: CALL is the argument of that call; its workspace is unchanged.
  kernels::cuda::Status Decode(const DeviceCall& call, std::span<float> out) const;

 private:
  struct Workspace;

  // In the functions below, VALUES are the values to encode: the sum of residual and gradient, or
  // the gradient alone if there is no residual.

  // Fits the codebook to VALUES: writes the codebook's numbers to the body, and the lookup table
  // and thresholds to the workspace.
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

  // Write the packed codes and subtract the decoded values from the residual. WriteSigns writes
  // codes of one bit, WriteCodes codes of several bits.
  kernels::cuda::Status WriteSigns(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const;
  kernels::cuda::Status WriteCodes(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const;

  kernels::cuda::Status EncodeQsgd(const DeviceCall& call) const;
  // Returns the codes of COUNT values, one byte each: in the workspace if they have fewer than
  // eight bits, else in the payload.
  std::span<uint8_t> Codes(const DeviceCall& call, size_t count, const Workspace& work) const;

  // FitsMeans returns true if the codebook consists of mean values or a mean magnitude. FitsTable
  // returns true if the codebook consists of percentiles of the magnitudes, with or without
  // refinement by Lloyd's algorithm.
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
