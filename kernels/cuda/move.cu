#include "kernels/cuda/move.h"

#include "kernels/cuda/for_all.h"
#include "kernels/float_order.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ float Moved(float value, uint32_t move) {
  return FloatOfNumber(NumberOfFloat(value) + move);
}

template <int N>
struct ValuesAndMoves {
  Few<float, N> value;
  Few<uint32_t, N> move;
};

struct MoveOp {
  template <int N>
  __device__ ValuesAndMoves<N> Load(size_t i) const {
    return {LoadFew<float, N>(values + i), LoadFew<uint32_t, N>(moves + i)};
  }
  template <int N>
  __device__ void Store(size_t i, ValuesAndMoves<N> at) const {
    for (int j = 0; j < N; ++j) at.value.at[j] = Moved(at.value.at[j], at.move.at[j]);
    StoreFew(at.value, values + i);
  }
  bool aligned() const {
    constexpr size_t kBytes = kWidth * sizeof(float);
    return BeginsAt(moves, kBytes) && BeginsAt(values, kBytes);
  }

  const uint32_t* moves;
  float* values;
};

__global__ void MoveAtKernel(const uint32_t* indices, const uint32_t* moves, size_t count,
                             float* values) {
  const size_t j = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) values[indices[j]] = Moved(values[indices[j]], moves[j]);
}

}  // namespace

Status Move(std::span<const uint32_t> moves, std::span<float> values, const Stream& stream) {
  return ForAll("move", MoveOp{moves.data(), values.data()}, values.size(), stream);
}

Status MoveAt(std::span<const uint32_t> indices, std::span<const uint32_t> moves,
              std::span<float> values, const Stream& stream) {
  return Launch("move at indices", MoveAtKernel, OneThreadEach(indices.size()), stream,
                indices.data(), moves.data(), indices.size(), values.data());
}

}  // namespace thinwire::kernels::cuda
