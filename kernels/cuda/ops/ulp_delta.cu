#include "kernels/cuda/ops/ulp_delta.h"

#include "kernels/cuda/block/elementwise.h"
#include "kernels/select/float_order.h"

namespace thinwire::kernels::cuda {
namespace {

__device__ float PlusUlps(float value, uint32_t delta) {
  return FloatOfOrdinal(OrdinalOfFloat(value) + delta);
}

template <int N>
struct ValuesAndDeltas {
  Pack<float, N> value;
  Pack<uint32_t, N> delta;
};

struct AddUlpsOp {
  template <int N>
  __device__ ValuesAndDeltas<N> Load(size_t i) const {
    return {LoadPack<float, N>(values + i), LoadPack<uint32_t, N>(deltas + i)};
  }
  template <int N>
  __device__ void Store(size_t i, ValuesAndDeltas<N> at) const {
    for (int j = 0; j < N; ++j) at.value.at[j] = PlusUlps(at.value.at[j], at.delta.at[j]);
    StorePack(at.value, values + i);
  }
  bool aligned() const {
    constexpr size_t kBytes = kPackSize * sizeof(float);
    return IsAligned(deltas, kBytes) && IsAligned(values, kBytes);
  }

  const uint32_t* deltas;
  float* values;
};

__global__ void AddUlpsAtKernel(const uint32_t* indices, const uint32_t* deltas, size_t count,
                                float* values) {
  const size_t j = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) values[indices[j]] = PlusUlps(values[indices[j]], deltas[j]);
}

}  // namespace

Status AddUlps(std::span<const uint32_t> deltas, std::span<float> values, const Stream& stream) {
  return LaunchElementwise("add ULPs", AddUlpsOp{deltas.data(), values.data()}, values.size(),
                           stream);
}

Status AddUlpsAt(std::span<const uint32_t> indices, std::span<const uint32_t> deltas,
                 std::span<float> values, const Stream& stream) {
  return Launch("add ULPs at indices", AddUlpsAtKernel, OneThreadPerItem(indices.size()), stream,
                indices.data(), deltas.data(), indices.size(), values.data());
}

}  // namespace thinwire::kernels::cuda
