#include "kernels/cuda/ops/affine_table.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

struct Fitted {
  float step;
  int zero;
  std::vector<float> table;
};

class AffineTableTest : public CudaTest {
 protected:
  Fitted Fit(const std::vector<Range>& ranges) {
    DeviceArray<Range> device_ranges(ranges, stream_);
    DeviceArray<std::byte> zero_byte(1, stream_), step_bytes(4, stream_, 1);
    DeviceArray<float> step_and_zero(2, stream_), table(256, stream_);
    Expect(FitAffineTable(device_ranges.span(),
                          {zero_byte.data(), step_bytes.data(), step_and_zero.span().first<2>(),
                           table.span().first<256>()},
                          stream_));
    const std::vector<float> pair = step_and_zero.Read();
    const std::vector<std::byte> bytes = step_bytes.Read();
    float step = 0;
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(&step, 1)).begin());
    EXPECT_EQ(step, pair[0]);
    const int zero = std::to_integer<int>(zero_byte.Read()[0]);
    EXPECT_EQ(static_cast<float>(zero), pair[1]);
    return {step, zero, table.Read()};
  }
};

TEST_F(AffineTableTest, EntriesCoverTheRangeAndOneIsZero) {
  // The test uses more ranges than a block has threads.
  std::vector<Range> ranges(300);
  ranges[17].least = -3.0f;
  ranges[299].most = 7.2f;
  const Fitted fitted = Fit(ranges);
  EXPECT_EQ(fitted.step, 7.2f / 255 - -3.0f / 255);
  EXPECT_EQ(fitted.table[static_cast<size_t>(fitted.zero)], 0.0f);
  for (size_t c = 0; c < 256; ++c) {
    EXPECT_EQ(fitted.table[c], fitted.step * static_cast<float>(static_cast<int>(c) - fitted.zero));
  }
  EXPECT_NEAR(fitted.table[0], -3.0f, fitted.step);
  EXPECT_NEAR(fitted.table[255], 7.2f, fitted.step);
}

TEST_F(AffineTableTest, StepAndTableAreZeroIfAllValuesAre) {
  const Fitted fitted = Fit({{}});
  EXPECT_EQ(fitted.step, 0.0f);
  EXPECT_EQ(fitted.zero, 0);
  EXPECT_EQ(fitted.table, std::vector<float>(256, 0.0f));
}

TEST_F(AffineTableTest, AllEntriesAreFinite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const Range range : {Range{-kMost, kMost}, Range{-kMost, 0}, Range{0, kMost}}) {
    const Fitted fitted = Fit({range});
    EXPECT_TRUE(std::ranges::all_of(fitted.table, [](float v) { return std::isfinite(v); }));
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
