#include "kernels/cuda/ops/sign_means.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

class SignMeansTest : public CudaTest {
 protected:
  static float MeanOf(double sum, size_t count) {
    return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
  }

  static std::vector<float> FromBytes(const std::vector<std::byte>& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

  void ExpectMeans(const std::vector<float>& values, const Groups& groups) {
    std::vector<SignSums> sums;
    std::vector<float> by_sign, magnitudes, both_signs;
    for (size_t first = 0; first < groups.count; first += groups.group) {
      const size_t n = std::min(groups.group, groups.count - first);
      const SignSums sum = kernels::SumBySign(std::span(values).subspan(first, n));
      sums.push_back(sum);
      by_sign.push_back(MeanOf(sum.positive, n - sum.negative_count));
      by_sign.push_back(MeanOf(sum.negative, sum.negative_count));
      magnitudes.push_back(MeanOf(sum.positive - sum.negative, n));
      both_signs.insert(both_signs.end(), {magnitudes.back(), -magnitudes.back()});
    }
    DeviceArray<SignSums> device_sums(sums, stream_);
    DeviceArray<float> entries(2 * sums.size(), stream_);
    DeviceArray<std::byte> two(sums.size() * 8, stream_, 1), one(sums.size() * 4, stream_, 3);
    Expect(MeansBySign(device_sums.span(), groups, two.data(), entries.span(), stream_));
    ExpectSameBits(entries.Read(), by_sign);
    ExpectSameBits(FromBytes(two.Read()), by_sign);
    Expect(MeanMagnitudes(device_sums.span(), groups, one.data(), entries.span(), stream_));
    ExpectSameBits(entries.Read(), both_signs);
    ExpectSameBits(FromBytes(one.Read()), magnitudes);
  }
};

TEST_F(SignMeansTest, EveryGroupHasItsOwnMeans) {
  for (const size_t count : {1, 8, 9, 1000, 4097}) {
    for (const size_t group : {8, 64, 1 << 20}) {
      ExpectMeans(ValuesOf(Kind::kRandom, count, 7), {count, group});
    }
  }
}

TEST_F(SignMeansTest, TheMeanOfNoValuesIsZero) {
  ExpectMeans(ValuesOf(Kind::kEqual, 100, 1), {100, 16});
  ExpectMeans(std::vector<float>(100, 0.5f), {100, 16});
}

}  // namespace
}  // namespace thinwire::kernels::cuda
