#include "kernels/cuda/ops/accumulate_momentum.h"

#include "kernels/cuda/block/elementwise.h"

namespace thinwire::kernels::cuda {
namespace {

template <int N>
struct GradientAndU {
  Pack<float, N> gradient, u;
};

template <bool kNesterov>
struct MomentumOp {
  template <int N>
  __device__ GradientAndU<N> Load(size_t i) const {
    return {LoadPack<float, N>(gradient + i), LoadPack<float, N>(u + i)};
  }
  template <int N>
  __device__ void Store(size_t i, GradientAndU<N> at) const {
    for (int j = 0; j < N; ++j) at.u.at[j] = momentum * at.u.at[j] + at.gradient.at[j];
    StorePack(at.u, u + i);
    if constexpr (kNesterov) {
      for (int j = 0; j < N; ++j) at.gradient.at[j] += momentum * at.u.at[j];
      StorePack(at.gradient, direction + i);
    }
  }
  bool aligned() const {
    constexpr size_t kBytes = kPackSize * sizeof(float);
    return IsAligned(gradient, kBytes) && IsAligned(u, kBytes) && IsAligned(direction, kBytes);
  }

  float momentum;
  const float* gradient;
  float* u;
  float* direction;  // null unless kNesterov
};

}  // namespace

Status AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u,
                          const Stream& stream) {
  const MomentumOp<false> op{momentum, gradient.data(), u.data(), nullptr};
  return LaunchElementwise("accumulate momentum", op, u.size(), stream);
}

Status AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                          std::span<float> direction, const Stream& stream) {
  const MomentumOp<true> op{momentum, gradient.data(), u.data(), direction.data()};
  return LaunchElementwise("accumulate Nesterov's momentum", op, u.size(), stream);
}

}  // namespace thinwire::kernels::cuda
