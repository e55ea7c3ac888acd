#include "kernels/cuda/add.h"
#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

struct AddOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    Few<float, N> sum = LoadFew<float, N>(residual + i);
    const Few<float, N> added = LoadFew<float, N>(gradient + i);
    for (int j = 0; j < N; ++j) sum.at[j] += added.at[j];
    return sum;
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& sum) const {
    StoreFew(sum, residual + i);
  }
  bool aligned() const {
    constexpr size_t kBytes = kWidth * sizeof(float);
    return BeginsAt(gradient, kBytes) && BeginsAt(residual, kBytes);
  }

  const float* gradient;
  float* residual;
};

}  // namespace

Status Add(std::span<const float> gradient, std::span<float> residual, const Stream& stream) {
  return ForAll("add", AddOp{gradient.data(), residual.data()}, residual.size(), stream);
}

}  // namespace thinwire::kernels::cuda
