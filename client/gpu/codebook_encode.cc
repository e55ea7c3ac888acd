#include "client/gpu/codebook_encode.h"

#include <algorithm>
#include <array>

#include "common/codec/codebook/fitted_table.h"
#include "kernels/cuda/block/tile.h"
#include "kernels/cuda/ops/affine_table.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/codebook_entries.h"
#include "kernels/cuda/ops/codes.h"
#include "kernels/cuda/ops/pack_bits.h"
#include "kernels/cuda/ops/qsgd.h"
#include "kernels/cuda/ops/reductions.h"
#include "kernels/cuda/ops/sign_means.h"
#include "kernels/cuda/ops/signs.h"
#include "kernels/cuda/ops/stratified_sample.h"
#include "kernels/cuda/ops/write_bytes.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/workspace_layout.h"
#include "kernels/pack_bits.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

namespace {

cuda::QsgdCode QsgdCodeOf(const CodebookSettings& settings, int bits, const DeviceCall& call) {
  return {std::to_integer<int>(settings.head[0]), bits, call.keys.per_worker};
}

}  // namespace

// The temporary arrays of one call of Encode(). Each kernel leaves its results there for later
// kernels of the call, and for Decode().
struct CodebookEncoder::Workspace {
  Workspace(const CodebookEncoder& encoder, size_t count, std::byte* memory) {
    const CodebookShape& shape = encoder.shape_;
    cuda::WorkspaceLayout layout(memory);
    const size_t groups = shape.GroupCount(count);
    table = layout.Append<float>(std::max(2 * groups, shape.table_size()));
    if (encoder.FitsMeans()) {
      sums = layout.Append<kernels::SignSums>(groups);
      runs = layout.Append<kernels::SignSums>(groups * cuda::SumRuns(shape.GroupSize(count)));
    }
    if (encoder.FitsTable()) {
      sample = layout.Append<float>(TableSampleCount(count, shape.number_count));
      sample_words = layout.Append<uint32_t>(2 * TableSampleCount(count, shape.number_count));
    }
    if (encoder.fit_ == CodebookFit::kEvenSteps) {
      ranges = layout.Append<kernels::Range>(cuda::OneBlockPerTile(count).block_count);
    }
    step_and_zero = layout.Append<float>(2);
    words = layout.Append<uint32_t>(2);
    if (shape.bits > 1) {
      magnitudes = layout.Append<float>(shape.table_size() / 2);
      thresholds = layout.Append<float>(shape.table_size() / 2);
      codes = layout.Append<uint8_t>(shape.bits == 8 ? 0 : count);
    }
    bytes = layout.bytes();
  }

  // The lookup table: the decoded value of each code. For one-bit codes, the table has two decoded
  // values per group of values.
  std::span<float> table;
  std::span<float> magnitudes, thresholds, sample;
  // For int8: the step size and the zero point. For a one-bit codec whose two decoded values are a
  // and -a: the first element is a.
  std::span<float> step_and_zero;
  std::span<uint32_t> sample_words, words;
  std::span<kernels::SignSums> sums, runs;
  std::span<kernels::Range> ranges;
  std::span<uint8_t> codes;
  size_t bytes = 0;
};

CodebookEncoder::CodebookEncoder(const CodebookFormat& format, const CodebookSettings& settings)
    : fit_(format.fit()), settings_(settings), shape_(format.Shape(settings.head).value()) {}

std::vector<std::byte> CodebookEncoder::Head() const {
  return {settings_.head.begin(),
          settings_.head.begin() + static_cast<ptrdiff_t>(shape_.head_bytes)};
}

size_t CodebookEncoder::WorkspaceBytes(size_t count) const {
  return FitsLargestMagnitude(fit_) ? 0 : Workspace(*this, count, nullptr).bytes;
}

bool CodebookEncoder::FitsMeans() const {
  return fit_ == CodebookFit::kMeansBySign || fit_ == CodebookFit::kMeanMagnitude;
}

bool CodebookEncoder::FitsTable() const {
  return fit_ == CodebookFit::kPercentiles || fit_ == CodebookFit::kLloyd;
}

std::byte* CodebookEncoder::Packed(const DeviceCall& call) const {
  return call.out + shape_.CodesOffset(call.gradient.size());
}

Status CodebookEncoder::Encode(const DeviceCall& call) const {
  if (call.gradient.empty()) return {};
  if (FitsLargestMagnitude(fit_)) return EncodeQsgd(call);
  const Workspace work(*this, call.gradient.size(), call.workspace);
  std::span<const float> values = call.gradient;
  if (!call.residual.empty()) {
    RETURN_IF_CUDA_ERROR(Add(call.gradient, call.residual, call.stream));
    values = call.residual;
  }
  RETURN_IF_CUDA_ERROR(Fit(call, values, work));
  return shape_.bits == 1 ? WriteSigns(call, values, work) : WriteCodes(call, values, work);
}

Status CodebookEncoder::Fit(const DeviceCall& call, std::span<const float> values,
                            const Workspace& work) const {
  if (FitsMeans()) return FitMeans(call, values, work);
  if (FitsTable()) return FitTable(call, values, work);
  if (fit_ == CodebookFit::kEvenSteps) return FitSteps(call, values, work);
  if (fit_ == CodebookFit::kRatios) return FitRatios(call, values, work);
  return FitThreshold(call, work);
}

Status CodebookEncoder::FitMeans(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const {
  const cuda::Groups groups = {values.size(), shape_.GroupSize(values.size())};
  const auto entries = work.table.first(2 * work.sums.size());
  RETURN_IF_CUDA_ERROR(SumBySign(values, groups.group, work.runs, work.sums, call.stream));
  return fit_ == CodebookFit::kMeansBySign
             ? MeansBySign(work.sums, groups, Numbers(call), entries, call.stream)
             : MeanMagnitudes(work.sums, groups, Numbers(call), entries, call.stream);
}

Status CodebookEncoder::FitSteps(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const {
  const cuda::AffineTable out = {call.out, Numbers(call), work.step_and_zero.first<2>(),
                                 work.table.first<256>()};
  RETURN_IF_CUDA_ERROR(RangeWithZero(values, cuda::kTileValues, work.ranges, call.stream));
  return FitAffineTable(work.ranges, out, call.stream);
}

Status CodebookEncoder::FitTable(const DeviceCall& call, std::span<const float> values,
                                 const Workspace& work) const {
  const auto magnitudes = shape_.bits == 1 ? work.step_and_zero.first(1) : work.magnitudes;
  RETURN_IF_CUDA_ERROR(SortedSample(values, work.sample, work.sample_words, call.stream));
  RETURN_IF_CUDA_ERROR(Percentiles(work.sample, magnitudes, call.stream));
  if (fit_ == CodebookFit::kLloyd) {
    RETURN_IF_CUDA_ERROR(RefineEntries(work.sample, kLloydIterations, magnitudes, call.stream));
  }
  return MakeSignedTable(magnitudes, Numbers(call), work.table, work.thresholds, call.stream);
}

Status CodebookEncoder::FitRatios(const DeviceCall& call, std::span<const float> values,
                                  const Workspace& work) const {
  RETURN_IF_CUDA_ERROR(FitLogEntries(values, work.words.first<2>(), call.out,
                                     work.magnitudes.first<8>(), call.stream));
  return MakeSignedTable(work.magnitudes, nullptr, work.table, work.thresholds, call.stream);
}

// This codebook does not depend on the values: it consists of 0 and the threshold, each with both
// signs. Values whose magnitude is at least the threshold are encoded as the threshold.
Status CodebookEncoder::FitThreshold(const DeviceCall& call, const Workspace& work) const {
  const std::array<float, 4> table = {0.0f, settings_.number, -0.0f, -settings_.number};
  const auto threshold = std::as_bytes(std::span(table).subspan(1, 1));
  RETURN_IF_CUDA_ERROR(cuda::WriteBytes(std::as_bytes(std::span(table)),
                                        std::as_writable_bytes(work.table).data(), call.stream));
  RETURN_IF_CUDA_ERROR(
      cuda::WriteBytes(threshold, std::as_writable_bytes(work.thresholds).data(), call.stream));
  return cuda::WriteBytes(threshold, Numbers(call), call.stream);
}

Status CodebookEncoder::WriteSigns(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const {
  if (call.residual.empty()) return PackSigns(values, Packed(call), call.stream);
  return PackSignsSubtract(work.table, shape_.GroupSize(values.size()), call.residual, Packed(call),
                           call.stream);
}

Status CodebookEncoder::WriteCodes(const DeviceCall& call, std::span<const float> values,
                                   const Workspace& work) const {
  const size_t count = values.size();
  const std::span<uint8_t> codes = Codes(call, count, work);
  if (fit_ == CodebookFit::kEvenSteps) {
    RETURN_IF_CUDA_ERROR(CodesOfSteps(values, work.step_and_zero.first<2>(), codes, call.stream));
  } else {
    const auto thresholds = work.thresholds.first(work.thresholds.size() - 1);
    RETURN_IF_CUDA_ERROR(CodesOfMagnitudes(values, thresholds, shape_.bits, codes, call.stream));
  }
  if (shape_.bits < 8) {
    RETURN_IF_CUDA_ERROR(PackBits(codes, shape_.bits, Packed(call), call.stream));
  } else {
    const std::span packed(Packed(call), kernels::PackedBytes(count, shape_.bits));
    RETURN_IF_CUDA_ERROR(Clear(packed.subspan(count), call.stream));
  }
  if (call.residual.empty()) return {};
  return LookUpSubtract(codes, work.table, call.residual, call.stream);
}

std::span<uint8_t> CodebookEncoder::Codes(const DeviceCall& call, size_t count,
                                          const Workspace& work) const {
  if (shape_.bits < 8) return work.codes;
  return {reinterpret_cast<uint8_t*>(Packed(call)), count};
}

Status CodebookEncoder::EncodeQsgd(const DeviceCall& call) const {
  const cuda::QsgdCode code = QsgdCodeOf(settings_, shape_.bits, call);
  const cuda::QsgdPayload out = {Numbers(call), Packed(call)};
  if (call.residual.empty()) return cuda::EncodeQsgd(call.gradient, code, out, call.stream);
  return EncodeQsgdFeedback(call.gradient, call.residual, code, out, call.stream);
}

Status CodebookEncoder::Decode(const DeviceCall& call, std::span<float> out) const {
  if (out.empty()) return {};
  if (FitsLargestMagnitude(fit_)) {
    return DecodeQsgd({Numbers(call), Packed(call)}, QsgdCodeOf(settings_, shape_.bits, call), 1.0f,
                      out, call.stream);
  }
  const Workspace work(*this, out.size(), call.workspace);
  if (shape_.bits == 1) {
    return UnpackSigns(Packed(call), work.table, shape_.GroupSize(out.size()), out, call.stream);
  }
  return LookUp(Codes(call, out.size(), work), work.table, out, call.stream);
}

}  // namespace thinwire::client::gpu
