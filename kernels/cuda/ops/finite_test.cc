#include "kernels/cuda/ops/finite.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/finite.h"

namespace thinwire::kernels::cuda {
namespace {

class FiniteTwinTest : public CudaTest {
 protected:
  bool FiniteOnDevice(const std::vector<float>& values) {
    DeviceArray<float> device_values(values, stream_);
    DeviceArray<uint32_t> answer(1, stream_);
    Expect(AllFinite(device_values.span(), answer.data(), stream_));
    return answer.Read() == std::vector<uint32_t>{1};
  }
};

TEST_F(FiniteTwinTest, AnswersLikeTheCpu) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    ASSERT_EQ(FiniteOnDevice(values), kernels::AllFinite(values));
  });
}

TEST_F(FiniteTwinTest, FindsOneNonFiniteValueAnywhere) {
  for (const size_t place : {0, 1, 255, 1024, 4095, 4096, 9998}) {
    std::vector<float> values = ValuesOf(Kind::kRandom, 10'000, 1);
    ASSERT_TRUE(FiniteOnDevice(values));
    values[place] = place % 2 == 0 ? INFINITY : -NAN;
    ASSERT_FALSE(FiniteOnDevice(values)) << place;
  }
}

template <typename Format>
class CodesWithinTwinTest : public CudaTest {};
using Formats = testing::Types<Fp32, Fp16, Bf16, Fp8E5m2, Fp8E4m3>;
TYPED_TEST_SUITE(CodesWithinTwinTest, Formats);

TYPED_TEST(CodesWithinTwinTest, AnswersLikeTheCpuForEveryBoundAndAddress) {
  using Code = typename TypeParam::Code;
  std::mt19937 random(3);
  for (const size_t offset : {0, 1}) {
    for (const size_t count : {0, 1, 33, 4096, 5000}) {
      std::vector<std::byte> codes(count * sizeof(Code));
      for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
      DeviceArray<std::byte> device_codes(codes, this->stream_, offset);
      for (const auto bound : {Code{0}, static_cast<Code>(TypeParam::kMaxFinite),
                               static_cast<Code>(kSignBit<TypeParam> - 1)}) {
        DeviceArray<uint32_t> answer(1, this->stream_);
        this->Expect(AllCodesWithin<TypeParam>(device_codes.data(), count, bound, answer.data(),
                                               this->stream_));
        ASSERT_EQ(answer.Read()[0],
                  kernels::AllCodesWithin<TypeParam>(codes.data(), count, bound) ? 1u : 0u);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
