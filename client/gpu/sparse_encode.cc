#include "client/gpu/sparse_encode.h"

#include <algorithm>
#include <array>

#include "common/codec/sparse/index_code.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/index_code.h"
#include "kernels/cuda/ops/sparse.h"
#include "kernels/cuda/ops/stratified_sample.h"
#include "kernels/cuda/ops/top_k.h"
#include "kernels/cuda/ops/write_bytes.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/workspace_layout.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

// The temporary arrays of one call of Encode() for COUNT values, of which K are sent. Each kernel
// leaves its results there for later kernels of the call.
struct SparseEncoder::Workspace {
  Workspace(const SparseEncoder& encoder, const DenseEncoder& dense, size_t count, size_t k,
            std::byte* memory) {
    cuda::WorkspaceLayout layout(memory);
    indices = layout.Append<uint32_t>(k);
    sent = layout.Append<float>(k);
    errors = layout.Append<float>(k);
    threshold = layout.Append<uint32_t>(1);
    index_words = layout.Append<uint32_t>(encoder.UsesGolombRice() ? cuda::GolombRiceWords(k) : 0);
    values = layout.Append<std::byte>(dense.WorkspaceBytes(k));
    if (encoder.CodesIndices()) {
      selection = layout.Append<std::byte>(cuda::TopKWorkspaceBytes(count, k));
    }
    bytes = layout.bytes();
  }

  std::span<uint32_t> indices;
  std::span<float> sent, errors;  // the sent values and their encoding errors
  std::span<uint32_t> threshold;  // topk's threshold, if error feedback is off
  std::span<uint32_t> index_words;
  std::span<std::byte> values, selection;
  size_t bytes = 0;
};

SparseEncoder::Parts SparseEncoder::PartsOf(size_t count, uint64_t draw,
                                            const DenseEncoder& values) const {
  Parts parts = {.head = {.format = format_}};
  size_t index_bytes = 0;
  if (CodesIndices()) {
    parts.head.entry_count = SparseEntryCount(spec_.density, count, spec_.least_sent);
    parts.head.coder = spec_.indices;
    index_bytes = MaxIndexBytes(spec_.indices, parts.head.entry_count, count);
  } else {
    parts.head.entry_count = SparseEntryCount(spec_.density, count);
    parts.head.draw = draw;
  }
  parts.values = parts.head.bytes();
  parts.indices = parts.values + values.PayloadBytes(parts.head.entry_count);
  parts.end = parts.indices + index_bytes;
  return parts;
}

size_t SparseEncoder::CodesOffset(size_t count, const DenseEncoder& values) const {
  const Parts parts = PartsOf(count, 0, values);
  return parts.values + values.CodesOffset(parts.head.entry_count);
}

size_t SparseEncoder::WorkspaceBytes(size_t count, const DenseEncoder& values) const {
  return Workspace(*this, values, count, PartsOf(count, 0, values).head.entry_count, nullptr).bytes;
}

Status SparseEncoder::WriteHeads(const Parts& parts, const DenseEncoder& values,
                                 const DeviceCall& call, uint32_t* size) const {
  std::array<std::byte, cuda::kMaxWriteBytes> bytes;
  parts.head.Put(bytes.data());
  std::ranges::copy(values.head(), bytes.begin() + static_cast<ptrdiff_t>(parts.values));
  return WriteHead(std::span(bytes).first(parts.values + values.head().size()), call.out,
                   static_cast<uint32_t>(parts.end), size, call.stream);
}

Status SparseEncoder::SelectLargest(const DeviceCall& call, uint32_t* threshold,
                                    const Workspace& work) const {
  const kernels::IndexedValues top = {work.indices, work.sent};
  if (!call.residual.empty()) {
    return AddAndSelectTopK(call.gradient, call.residual, top, threshold, work.selection,
                            call.stream);
  }
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(work.threshold), call.stream));
  return SelectTopK(call.gradient, top, work.threshold.data(), work.selection, call.stream);
}

Status SparseEncoder::SelectRandom(const DeviceCall& call, const Workspace& work) const {
  const bool feedback = !call.residual.empty();
  const std::span<const float> from = feedback ? call.residual : call.gradient;
  if (feedback) RETURN_IF_CUDA_ERROR(Add(call.gradient, call.residual, call.stream));
  RETURN_IF_CUDA_ERROR(DrawIndices(call.keys.shared, from.size(), work.indices, call.stream));
  RETURN_IF_CUDA_ERROR(Gather(from, work.indices, work.sent, call.stream));
  if (!spec_.unbiased || feedback) return {};
  const auto factor = static_cast<float>(from.size()) / static_cast<float>(work.sent.size());
  return Scale(factor, work.sent, call.stream);
}

Status SparseEncoder::EncodeIndices(const DeviceCall& call, size_t offset, const Workspace& work,
                                    uint32_t* size) const {
  if (!CodesIndices()) return {};
  const size_t universe = call.gradient.size();
  std::byte* const out = call.out + offset;
  if (!UsesGolombRice()) return EncodeEliasFano(work.indices, universe, out, call.stream);
  const cuda::GolombRiceCode code = {out, size, static_cast<uint32_t>(offset)};
  return EncodeGolombRice(work.indices, universe, work.index_words, code, call.stream);
}

Status SparseEncoder::Encode(const DenseEncoder& values, const DeviceCall& call,
                             uint32_t* threshold, uint32_t* size) const {
  const size_t count = call.gradient.size();
  const Parts parts = PartsOf(count, call.keys.shared, values);
  const Workspace work(*this, values, count, parts.head.entry_count, call.workspace);
  const auto errors = call.residual.empty() ? std::span<float>() : work.errors;
  RETURN_IF_CUDA_ERROR(WriteHeads(parts, values, call, size));
  RETURN_IF_CUDA_ERROR(CodesIndices() ? SelectLargest(call, threshold, work)
                                      : SelectRandom(call, work));
  // `errors` is the residual of this encoding: it is zero before the encoding, and contains the
  // encoding errors of the sent values afterwards.
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(errors), call.stream));
  RETURN_IF_CUDA_ERROR(values.EncodeBody(
      {work.sent, errors, call.keys, work.values.data(), call.out + parts.values, call.stream}));
  RETURN_IF_CUDA_ERROR(EncodeIndices(call, parts.indices, work, size));
  return Scatter(std::span(work.indices).first(errors.size()), errors, 1.0f, call.residual,
                 call.stream);
}

}  // namespace thinwire::client::gpu
