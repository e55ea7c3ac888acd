#include "kernels/cuda/ops/top_k.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/select/top_k.h"

namespace thinwire::kernels::cuda {
namespace {

class TopKTwinTest : public CudaTest {
 protected:
  struct Selected {
    std::vector<uint32_t> indices;
    std::vector<float> values;
    uint32_t threshold = 0;
    std::vector<float> sums;  // the array after the selection
  };

  static Selected OnCpu(const std::vector<float>* gradient, const std::vector<float>& values,
                        size_t k) {
    Selected s{std::vector<uint32_t>(k), std::vector<float>(k), 0, values};
    const IndexedValues top{s.indices, s.values};
    if (gradient != nullptr) {
      kernels::AddAndSelectTopK(*gradient, s.sums, top, s.threshold);
    } else {
      kernels::SelectTopK(s.sums, top, s.threshold);
    }
    return s;
  }

  Selected OnDevice(const std::vector<float>* gradient, const std::vector<float>& values, size_t k,
                    uint32_t last, size_t offset = 0) {
    DeviceArray<float> device_values(values, stream_, offset);
    DeviceArray<float> device_gradient(gradient != nullptr ? *gradient : std::vector<float>(),
                                       stream_);
    DeviceArray<uint32_t> indices(k, stream_), threshold(std::vector<uint32_t>{last}, stream_);
    DeviceArray<float> top(k, stream_);
    DeviceArray<std::byte> workspace(TopKWorkspaceBytes(values.size(), k), stream_);
    const IndexedValues out{indices.span(), top.span()};
    Expect(gradient != nullptr ? AddAndSelectTopK(device_gradient.span(), device_values.span(), out,
                                                  threshold.data(), workspace.span(), stream_)
                               : SelectTopK(device_values.span(), out, threshold.data(),
                                            workspace.span(), stream_));
    Selected s{indices.Read(), top.Read(), threshold.Read()[0], device_values.Read()};
    workspace.Read();
    return s;
  }

  static void ExpectSame(const Selected& got, const Selected& want) {
    ASSERT_EQ(got.indices, want.indices);
    ExpectSameBits(got.values, want.values);
    ExpectSameBits(got.sums, want.sums);
  }

  // Expects the CPU's selection for several thresholds, including thresholds that no earlier
  // selection would predict.
  void ExpectTopOf(const std::vector<float>& values, size_t k) {
    const Selected want = OnCpu(nullptr, values, k);
    for (const uint32_t last : {0u, 1u, want.threshold, ~0u}) {
      SCOPED_TRACE(testing::Message() << k << " from " << last);
      ExpectSame(OnDevice(nullptr, values, k, last), want);
    }
  }
};

std::vector<float> Gauss(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> gauss;
  std::vector<float> values(count);
  for (float& value : values) value = gauss(random);
  return values;
}

TEST_F(TopKTwinTest, SelectsTheCpusSet) {
  for (const size_t count : {1, 33, 511, 512, 513, 4095, 4096, 4097, 20'000}) {
    const std::vector<float> values = Gauss(count, static_cast<uint32_t>(count));
    for (const size_t k : {size_t{0}, size_t{1}, count / 1000, count / 10, count - 1, count}) {
      ExpectTopOf(values, k);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(TopKTwinTest, SelectsTheCpusSetFromEveryKindOfValues) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    if (values.empty()) return;
    const size_t k = std::max<size_t>(1, values.size() / 100);
    const Selected want = OnCpu(nullptr, values, k);
    for (const uint32_t last : {0u, want.threshold}) {
      ExpectSame(OnDevice(nullptr, values, k, last), want);
    }
  });
}

// The array has more tiles than one block scans at the same time.
TEST_F(TopKTwinTest, SelectsTheCpusSetFromVeryManyValues) {
  const std::vector<float> values = ValuesOf(Kind::kRandom, (size_t{1} << 24) + 5000, 3);
  const Selected want = OnCpu(nullptr, values, values.size() / 1000);
  ExpectSame(OnDevice(nullptr, values, values.size() / 1000, want.threshold), want);
}

TEST_F(TopKTwinTest, PrefersTheLowerIndexAmongEqualMagnitudes) {
  std::vector<float> values(30'000, 1.0f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -1.0f;
  for (const size_t k : {1, 2, 777, 29'999}) ExpectTopOf(values, k);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::round(2 * values[i] * static_cast<float>(i) / 30'000);
  }
  ExpectTopOf(values, 9'000);
}

TEST_F(TopKTwinTest, SelectsZerosIfFewerThanKValuesAreNonzero) {
  std::vector<float> values(50'000, 0.0f);
  values[49'000] = 1.0f;
  values[7] = -2.0f;
  ExpectTopOf(values, 500);
}

TEST_F(TopKTwinTest, AddsTheGradientBeforeSelecting) {
  for (const size_t count : {5, 1000, 80'001}) {
    for (const size_t offset : {0, 1}) {
      const std::vector<float> gradient = Gauss(count, 6), values = Gauss(count, 7);
      const size_t k = 1 + count / 100;
      const Selected want = OnCpu(&gradient, values, k);
      for (const uint32_t last : {0u, 1u, want.threshold, 0x40000000u, 0x7F800000u}) {
        ExpectSame(OnDevice(&gradient, values, k, last, offset), want);
      }
    }
  }
}

TEST_F(TopKTwinTest, SelectingNoneStillAddsTheGradient) {
  const std::vector<float> gradient = Gauss(3000, 8), values = Gauss(3000, 9);
  ExpectSame(OnDevice(&gradient, values, 0, 0), OnCpu(&gradient, values, 0));
}

// Simulates error feedback over several steps. Each step uses the threshold that the selection of
// the previous step predicted.
TEST_F(TopKTwinTest, SelectsTheCpusSetStepAfterStep) {
  const size_t count = 50'000, k = 50;
  std::vector<float> cpu(count, 0.0f), device(count, 0.0f);
  uint32_t threshold = 0;
  for (uint32_t step = 0; step < 12; ++step) {
    const std::vector<float> gradient = Gauss(count, step);
    Selected want = OnCpu(&gradient, cpu, k);
    Selected got = OnDevice(&gradient, device, k, threshold);
    ExpectSame(got, want);
    for (const uint32_t index : want.indices) want.sums[index] = got.sums[index] = 0;
    cpu = want.sums;
    device = got.sums;
    threshold = got.threshold;
    // A good prediction yields few candidates: few of the values left after this step have a
    // magnitude of at least the threshold that is predicted for the next step.
    const auto reaches = [&](float value) { return MagnitudeBits(value) >= threshold; };
    const auto left = static_cast<size_t>(std::ranges::count_if(device, reaches));
    EXPECT_LT(left, 2 * k + 64) << "after step " << step;
  }
}

TEST_F(TopKTwinTest, OrdersNonFiniteAndSubnormalValues) {
  std::vector<float> values = Gauss(20'000, 10);
  for (float& value : values) value *= 1e-42f;  // makes most values subnormal
  values[3] = INFINITY;
  values[17'000] = -NAN;
  values[9'000] = -INFINITY;
  values[11] = 0.0f;
  for (const size_t k : {1, 2, 3, 4, 700, 19'999, 20'000}) ExpectTopOf(values, k);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
