#include "kernels/cuda/ops/finite.h"

#include "kernels/cuda/block/elementwise.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void SetKernel(uint32_t* word, uint32_t value) { *word = value; }

template <typename Format>
struct WithinOp {
  using Code = typename Format::Code;

  template <int N>
  __device__ Pack<Code, N> Load(size_t i) const {
    return LoadPackUnaligned<Code, N>(codes, i);
  }
  template <int N>
  __device__ void Store(size_t, const Pack<Code, N>& code) const {
    bool within = true;
    for (int j = 0; j < N; ++j) within = within && (code.at[j] & (kSignBit<Format> - 1)) <= largest;
    if (!within) atomicExch(answer, 0);
  }
  bool aligned() const { return IsAligned(codes, kPackSize * sizeof(Code)); }

  const std::byte* codes;
  Code largest;
  uint32_t* answer;
};

}  // namespace

template <typename Format>
Status AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest,
                      uint32_t* answer, const Stream& stream) {
  RETURN_IF_CUDA_ERROR(Launch("initialize a check", SetKernel, {1, 1}, stream, answer, 1u));
  return LaunchElementwise("check codes", WithinOp<Format>{codes, largest, answer}, count, stream);
}

template Status AllCodesWithin<Fp32>(const std::byte*, size_t, Fp32::Code, uint32_t*,
                                     const Stream&);
template Status AllCodesWithin<Fp16>(const std::byte*, size_t, Fp16::Code, uint32_t*,
                                     const Stream&);
template Status AllCodesWithin<Bf16>(const std::byte*, size_t, Bf16::Code, uint32_t*,
                                     const Stream&);
template Status AllCodesWithin<Fp8E5m2>(const std::byte*, size_t, Fp8E5m2::Code, uint32_t*,
                                        const Stream&);
template Status AllCodesWithin<Fp8E4m3>(const std::byte*, size_t, Fp8E4m3::Code, uint32_t*,
                                        const Stream&);

Status AllFinite(std::span<const float> values, uint32_t* answer, const Stream& stream) {
  return AllCodesWithin<Fp32>(std::as_bytes(values).data(), values.size(), Fp32::kMaxFinite, answer,
                              stream);
}

}  // namespace thinwire::kernels::cuda
