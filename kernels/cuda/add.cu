#include "kernels/cuda/add.h"

#include "kernels/cuda/for_all.h"

namespace thinwire::kernels::cuda {
namespace {

struct AddOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadSum<N>(sum + i, values + i);
  }
  template <int N>
  __device__ void Store(size_t i, const Few<float, N>& total) const {
    StoreFew(total, sum + i);
  }
  bool aligned() const {
    constexpr size_t kBytes = kWidth * sizeof(float);
    return BeginsAt(values, kBytes) && BeginsAt(sum, kBytes);
  }

  const float* values;
  float* sum;
};

}  // namespace

Status Add(std::span<const float> values, std::span<float> sum, const Stream& stream) {
  return ForAll("add", AddOp{values.data(), sum.data()}, sum.size(), stream);
}

}  // namespace thinwire::kernels::cuda
