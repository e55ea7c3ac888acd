#include "client/gpu/low_rank_encode.h"

#include <algorithm>
#include <array>

#include "common/codec/low_rank/power_sgd.h"
#include "kernels/cuda/ops/arithmetic.h"
#include "kernels/cuda/ops/normalize_columns.h"
#include "kernels/cuda/ops/reductions.h"
#include "kernels/cuda/ops/write_bytes.h"
#include "kernels/cuda/runtime/workspace_layout.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;
using cuda::Status;

// The temporary arrays of one call of Encode().
struct LowRankEncoder::Workspace {
  Workspace(const LowRankHead& head, const DenseEncoder& dense, std::byte* memory) {
    cuda::WorkspaceLayout layout(memory);
    p = layout.Append<float>(head.p_count());
    q = layout.Append<float>(head.q_count());
    column = layout.Append<double>(head.rows());
    largest = layout.Append<float>(1);
    values = layout.Append<std::byte>(
        std::max(dense.WorkspaceBytes(head.p_count()), dense.WorkspaceBytes(head.q_count())));
    bytes = layout.bytes();
  }

  std::span<float> p, q;
  std::span<double> column;  // a column of P
  std::span<float> largest;  // the largest magnitude of the matrix
  std::span<std::byte> values;
  size_t bytes = 0;
};

cuda::ProductShape LowRankEncoder::Shape() const {
  return {.rows = head_.rows(),
          .columns = head_.matrix.columns,
          .first_column = head_.matrix.first_column,
          .rank = head_.rank};
}

size_t LowRankEncoder::OffsetOfQ() const {
  return LowRankHead::kBytes + values_.PayloadBytes(head_.p_count());
}

size_t LowRankEncoder::PayloadBytes() const {
  return OffsetOfQ() + values_.PayloadBytes(head_.q_count());
}

size_t LowRankEncoder::CodesOffset() const {
  return LowRankHead::kBytes + values_.CodesOffset(head_.p_count());
}

size_t LowRankEncoder::WorkspaceBytes() const { return Workspace(head_, values_, nullptr).bytes; }

Status LowRankEncoder::WriteHeads(const DeviceCall& call, uint32_t* size) const {
  std::array<std::byte, cuda::kMaxWriteBytes> bytes;
  head_.Put(bytes.data());
  std::ranges::copy(values_.head(), bytes.begin() + LowRankHead::kBytes);
  RETURN_IF_CUDA_ERROR(
      WriteHead(std::span(bytes).first(LowRankHead::kBytes + values_.head().size()), call.out,
                static_cast<uint32_t>(PayloadBytes()), size, call.stream));
  return WriteBytes(values_.head(), call.out + OffsetOfQ(), call.stream);
}

Status LowRankEncoder::PrepareWarmStart(cuda::DeviceBuffer<float>& warm_start,
                                        const cuda::Stream& stream) const {
  if (warm_start.size() == head_.q_count()) return {};
  RETURN_IF_CUDA_ERROR(warm_start.Allocate(head_.q_count()));
  RETURN_IF_CUDA_ERROR(Clear(std::as_writable_bytes(warm_start.span()), stream));
  return ScaleColumns(head_.matrix.columns, warm_start.span(), stream);  // draws the first Q
}

Status LowRankEncoder::Iterate(std::span<const float> values, std::span<float> warm_start,
                               const Workspace& work, const cuda::Stream& stream) const {
  const cuda::ProductShape shape = Shape();
  float* const largest = work.largest.data();
  RETURN_IF_CUDA_ERROR(LargestMagnitude(values, largest, stream));
  RETURN_IF_CUDA_ERROR(MultiplyRows(values, shape, warm_start, largest, work.p, stream));
  RETURN_IF_CUDA_ERROR(Orthonormalize(shape.rows, work.p, work.column, stream));
  RETURN_IF_CUDA_ERROR(
      MultiplyColumns(values, shape, work.p, LargestInQ(shape.rank), work.q, stream));
  RETURN_IF_CUDA_ERROR(cuda::CopyOnDevice(work.q, warm_start, stream));
  return ScaleColumns(shape.columns, warm_start, stream);
}

Status LowRankEncoder::EncodeFactor(const DeviceCall& call, std::span<float> factor, size_t offset,
                                    const Workspace& work) const {
  const DeviceCall of_factor = {factor,     {}, call.keys, work.values.data(), call.out + offset,
                                call.stream};
  RETURN_IF_CUDA_ERROR(values_.EncodeBody(of_factor));
  if (call.residual.empty()) return {};
  return values_.DecodeBody(of_factor, factor);
}

Status LowRankEncoder::Encode(const DeviceCall& call, cuda::DeviceBuffer<float>& warm_start,
                              uint32_t* size) const {
  const Workspace work(head_, values_, call.workspace);
  const bool feedback = !call.residual.empty();
  const std::span<const float> values = feedback ? call.residual : call.gradient;
  RETURN_IF_CUDA_ERROR(WriteHeads(call, size));
  if (feedback) RETURN_IF_CUDA_ERROR(Add(call.gradient, call.residual, call.stream));
  RETURN_IF_CUDA_ERROR(PrepareWarmStart(warm_start, call.stream));
  RETURN_IF_CUDA_ERROR(Iterate(values, warm_start.span(), work, call.stream));
  RETURN_IF_CUDA_ERROR(EncodeFactor(call, work.p, LowRankHead::kBytes, work));
  RETURN_IF_CUDA_ERROR(EncodeFactor(call, work.q, OffsetOfQ(), work));
  if (!feedback) return {};
  return SubtractProduct(Shape(), work.p, work.q, call.residual, call.stream);
}

}  // namespace thinwire::client::gpu
