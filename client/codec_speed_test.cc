#include "client/codec_speed.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace thinwire::client {
namespace {

constexpr size_t kValues = 4096;

// A millisecond passes between two looks at it.
class TickingClock final : public Clock {
 public:
  absl::Time Now() override { return now_ += absl::Milliseconds(1); }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

TEST(CodecSpeedTest, TimesAreOfOneValue) {
  TickingClock clock;
  const CodecCost cost = *MeasureCodec({.id = CodecId::kFp8E5m2}, kValues, clock);
  EXPECT_EQ(cost.spec.id, CodecId::kFp8E5m2);
  EXPECT_DOUBLE_EQ(cost.encode_seconds, 1e-3 / kValues);
  EXPECT_DOUBLE_EQ(cost.decode_seconds, 1e-3 / kValues);
}

TEST(CodecSpeedTest, BytesAreThoseOfThePayload) {
  TickingClock clock;
  const auto bytes = [&](const CodecSpec& spec) {
    return MeasureCodec(spec, kValues, clock)->bytes;
  };
  EXPECT_NEAR(bytes({.id = CodecId::kFp32}), 4, .01);
  EXPECT_NEAR(bytes({.id = CodecId::kBf16}), 2, .01);
  EXPECT_NEAR(bytes({.id = CodecId::kFp8E4m3}), 1, .01);
  EXPECT_LT(bytes({.id = CodecId::kTopK, .density = .01}), .1);
}

TEST(CodecSpeedTest, RawIsSentFromWhereItLies) {
  TickingClock clock;
  const CodecCost cost = *MeasureCodec({.id = CodecId::kFp32}, kValues, clock);
  EXPECT_EQ(cost.encode_seconds, 0);
  EXPECT_GT(cost.decode_seconds, 0);
}

TEST(CodecSpeedTest, ASpecThatMakesNoCodecIsAnError) {
  TickingClock clock;
  EXPECT_FALSE(MeasureCodec({.id = CodecId::kTopK, .density = 2}, kValues, clock).ok());
}

}  // namespace
}  // namespace thinwire::client
