#include "kernels/cuda/ops/arithmetic.h"

#include "kernels/cuda/block/elementwise.h"

namespace thinwire::kernels::cuda {
namespace {

struct AddOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadSum<N>(sum + i, values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Pack<float, N>& total) const {
    StorePack(total, sum + i);
  }
  bool aligned() const {
    constexpr size_t kBytes = kPackSize * sizeof(float);
    return IsAligned(values, kBytes) && IsAligned(sum, kBytes);
  }

  const float* values;
  float* sum;
};

struct ScaleOp {
  template <int N>
  __device__ Pack<float, N> Load(size_t i) const {
    return LoadPack<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, Pack<float, N> value) const {
    for (int j = 0; j < N; ++j) value.at[j] *= factor;
    StorePack(value, values + i);
  }
  bool aligned() const { return IsAligned(values, kPackSize * sizeof(float)); }

  float factor;
  float* values;
};

}  // namespace

Status Add(std::span<const float> values, std::span<float> sum, const Stream& stream) {
  return LaunchElementwise("add", AddOp{values.data(), sum.data()}, sum.size(), stream);
}

Status Scale(float factor, std::span<float> values, const Stream& stream) {
  return LaunchElementwise("scale", ScaleOp{factor, values.data()}, values.size(), stream);
}

}  // namespace thinwire::kernels::cuda
