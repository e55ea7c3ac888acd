#include "client/encode/codec_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/codec/table.h"

namespace thinwire::client {
namespace {

constexpr double kNano = 1e-9;
// A goodput, in bytes per second, that is higher than the memory bandwidth of one thread.
constexpr double kFast = 10e9;
constexpr double kGigabit = 118e6;

// Returns the costs of fp32 and of two codecs that send fewer bytes but need more computing time.
std::vector<CodecCost> Costs() {
  return {{.spec = {.id = CodecId::kFp32}, .bytes = 4, .decode_seconds = .3 * kNano},
          {.spec = {.id = CodecId::kFp8E4m3}, .bytes = 1, .encode_seconds = 2 * kNano},
          {.spec = {.id = CodecId::kFp8E5m2}, .bytes = 1, .encode_seconds = 1 * kNano}};
}

CodecId Settled(double goodput) {
  CodecChoice choice(ChoiceRule::kAuto, Costs());
  for (int i = 0; i < CodecChoice::kPatience; ++i) choice.Update(goodput);
  return choice.spec().id;
}

TEST(CodecChoiceTest, ASlowNetworkPrefersFewBytesAndAFastOneLittleComputing) {
  EXPECT_EQ(Settled(kGigabit / 10), CodecId::kFp8E4m3);
  EXPECT_EQ(Settled(2e9), CodecId::kFp8E5m2) << "half the computing time of fp8_e4m3";
  EXPECT_EQ(Settled(kFast), CodecId::kFp32);
}

TEST(CodecChoiceTest, OfTwoEquallyFastCodecsTheMoreExactIsPreferred) {
  // At 12 MB/s both fp8 codecs take more than 83 ns per value; their times differ by 1 ns,
  // which is within kTolerance.
  EXPECT_EQ(FastestCodec(Costs(), 12e6), 2u);
  EXPECT_EQ(PreferredCodec(Costs(), 12e6), 1u);
  EXPECT_EQ(PreferredCodec(Costs(), 1e9), 2u);
}

TEST(CodecChoiceTest, ThePreferredCodecIsWithinTheToleranceOfTheFastest) {
  for (double goodput = 1e5; goodput < 1e11; goodput *= 1.3) {
    const double fastest = SecondsPerValue(Costs()[FastestCodec(Costs(), goodput)], goodput);
    const double preferred = SecondsPerValue(Costs()[PreferredCodec(Costs(), goodput)], goodput);
    EXPECT_LE(preferred, (1 + CodecChoice::kTolerance) * fastest) << goodput;
  }
}

TEST(CodecChoiceTest, Fp32RemainsUntilAnotherCodecHasWonSeveralTimes) {
  CodecChoice choice(ChoiceRule::kAuto, Costs());
  for (int i = 1; i < CodecChoice::kPatience; ++i) {
    EXPECT_FALSE(choice.Update(kGigabit));
    EXPECT_EQ(choice.spec().id, CodecId::kFp32);
  }
  EXPECT_TRUE(choice.Update(kGigabit));
  EXPECT_EQ(choice.spec().id, CodecId::kFp8E5m2);
}

TEST(CodecChoiceTest, OneSlowMomentOfTheNetworkChangesNothing) {
  CodecChoice choice(ChoiceRule::kAuto, Costs());
  EXPECT_TRUE(choice.Update(kFast)) << "the first reason for fp32";
  for (int i = 0; i < 10; ++i) {
    for (int j = 1; j < CodecChoice::kPatience; ++j) EXPECT_FALSE(choice.Update(kGigabit));
    EXPECT_FALSE(choice.Update(kFast));
  }
  EXPECT_EQ(choice.spec().id, CodecId::kFp32);
}

TEST(CodecChoiceTest, AGoodputAtTheBorderDoesNotSwitchBackAndForth) {
  // Per value, fp8_e5m2 sends 3 bytes fewer than fp32 and computes 0.7 ns longer. Both codecs take
  // the same time at a goodput of 3 bytes / 0.7 ns = 4.29 GB/s.
  CodecChoice choice(ChoiceRule::kAuto, Costs());
  int changes = 0;
  for (int i = 0; i < 100; ++i) changes += choice.Update(i / 5 % 2 == 0 ? 4.2e9 : 4.4e9) ? 1 : 0;
  EXPECT_EQ(changes, 1) << choice.reason();
}

TEST(CodecChoiceTest, Fp32ReturnsWhenTheNetworkIsFastAgain) {
  CodecChoice choice(ChoiceRule::kAuto, Costs());
  for (int i = 0; i < CodecChoice::kPatience; ++i) choice.Update(kGigabit);
  ASSERT_EQ(choice.spec().id, CodecId::kFp8E5m2);
  for (int i = 0; i < CodecChoice::kPatience; ++i) choice.Update(kFast);
  EXPECT_EQ(choice.spec().id, CodecId::kFp32);
}

TEST(CodecChoiceTest, FastestDecidesOnce) {
  CodecChoice choice(ChoiceRule::kFastest, Costs());
  EXPECT_TRUE(choice.Update(12e6));
  EXPECT_EQ(choice.spec().id, CodecId::kFp8E5m2)
      << "the fastest, not a more exact one within the tolerance";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(choice.Update(kFast));
  EXPECT_EQ(choice.spec().id, CodecId::kFp8E5m2);
}

TEST(CodecChoiceTest, TheReasonNamesTheGoodputAndEveryCandidate) {
  CodecChoice choice(ChoiceRule::kFastest, Costs());
  EXPECT_EQ(choice.reason(), "nothing measured yet");
  choice.Update(100e6);
  EXPECT_EQ(choice.reason(), "at 100.0 MB/s: fp8_e5m2 11 ns a value, fp32 40.3, fp8_e4m3 12");
}

}  // namespace
}  // namespace thinwire::client
