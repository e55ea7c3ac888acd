#include "client/encode/codec_speed.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"
#include "common/model/partition.h"

namespace thinwire::client {
namespace {

constexpr size_t kValues = 4096;

// A clock that advances by a millisecond at every call of Now.
class TickingClock final : public Clock {
 public:
  absl::Time Now() override { return now_ += absl::Milliseconds(1); }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

absl::StatusOr<CodecCost> Measure(const CodecSpec& spec) {
  TickingClock clock;
  const auto costs = MeasureCodecs({&spec, 1}, kValues, ClientOptions(), /*device=*/nullptr, clock);
  if (!costs.ok()) return costs.status();
  return costs->front();
}

TEST(CodecSpeedTest, TimesArePerValue) {
  const CodecCost cost = *Measure({.id = CodecId::kFp8E5m2});
  EXPECT_EQ(cost.spec.id, CodecId::kFp8E5m2);
  EXPECT_DOUBLE_EQ(cost.encode_seconds, 1e-3 / kValues);
  EXPECT_DOUBLE_EQ(cost.decode_seconds, 1e-3 / kValues);
}

TEST(CodecSpeedTest, BytesArePayloadBytesPerValue) {
  const auto bytes = [](const CodecSpec& spec) { return Measure(spec)->bytes; };
  EXPECT_NEAR(bytes({.id = CodecId::kFp32}), 4, .01);
  EXPECT_NEAR(bytes({.id = CodecId::kBf16}), 2, .01);
  EXPECT_NEAR(bytes({.id = CodecId::kFp8E4m3}), 1, .01);
  EXPECT_LT(bytes({.id = CodecId::kTopK, .density = .01}), .1);
}

// The residual after the measurement of one codec does not affect the measurement of the next
// codec.
TEST(CodecSpeedTest, EachCodecIsMeasuredByItself) {
  TickingClock clock;
  const std::vector<CodecSpec> specs = {
      {.id = CodecId::kOneBit}, {.id = CodecId::kTopK, .density = .01}, {.id = CodecId::kFp32}};
  const auto costs = *MeasureCodecs(specs, kLargestShardSize, ClientOptions(), nullptr, clock);
  ASSERT_EQ(costs.size(), 3u);
  for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(costs[i].spec, specs[i]);
  EXPECT_LT(costs[0].bytes, .14);
  EXPECT_LT(costs[1].bytes, .1);
  EXPECT_NEAR(costs[2].bytes, 4, .01);
}

TEST(CodecSpeedTest, AnInvalidSpecIsAnError) {
  EXPECT_FALSE(Measure({.id = CodecId::kTopK, .density = 2}).ok());
}

}  // namespace
}  // namespace thinwire::client
