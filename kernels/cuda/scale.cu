#include "kernels/cuda/scale.h"

#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

struct ScaleOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadFew<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t i, Few<float, N> value) const {
    for (int j = 0; j < N; ++j) value.at[j] *= factor;
    StoreFew(value, values + i);
  }
  bool aligned() const { return BeginsAt(values, kWidth * sizeof(float)); }

  float factor;
  float* values;
};

}  // namespace

Status Scale(float factor, std::span<float> values, const Stream& stream) {
  return ForAll("scale", ScaleOp{factor, values.data()}, values.size(), stream);
}

}  // namespace thinwire::kernels::cuda
