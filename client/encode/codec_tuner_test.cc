#include "client/encode/codec_tuner.h"

#include <gtest/gtest.h>

#include <memory>

namespace thinwire::client {
namespace {

constexpr size_t kStepBytes = 40000000;

class CodecTunerTest : public testing::Test {
 protected:
  static Partition MakePartition() {
    return *Partition::Make(
        {{"conv", {8, 4, 3, 3}}, {"dense", {64, 64}}, {"bias", {64}}, {"scale", {}}}, 0, 1);
  }

  std::unique_ptr<CodecTuner> Make(std::vector<CodecSpec> candidates,
                                   ChoiceRule rule = ChoiceRule::kAuto) {
    ClientOptions options;
    options.choose = rule;
    options.candidates = std::move(candidates);
    return *CodecTuner::Make(partition_, options, /*device=*/nullptr, clock_);
  }

  // Simulates a step whose pushes take SECONDS to transfer. Returns the result of
  // CodecTuner::EndStep.
  bool Step(CodecTuner& tuner, double seconds) {
    tuner.meter().Sent(kStepBytes, clock_.Now());
    clock_.Advance(absl::Seconds(seconds));
    tuner.meter().Judged(kStepBytes, clock_.Now());
    return tuner.EndStep();
  }

  CodecId CodecOf(const CodecTuner& tuner, uint32_t tensor) {
    return tuner.CodecOf(partition_.ShardsOfTensor(tensor)[0]).id();
  }

  const Partition partition_ = MakePartition();
  // This clock stands still while the codecs are measured, so every codec appears to take 0 s.
  ManualClock clock_;
};

TEST_F(CodecTunerTest, EveryGroupBeginsWithFp32) {
  const auto tuner = Make({{.id = CodecId::kFp8E5m2}});
  for (uint32_t tensor = 0; tensor < 4; ++tensor) {
    EXPECT_EQ(CodecOf(*tuner, tensor), CodecId::kFp32) << tensor;
  }
  const auto choices = tuner->choices();
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].group, "matrices");
  EXPECT_EQ(choices[1].group, "convolutions");
  EXPECT_EQ(choices[2].group, "vectors");
  EXPECT_EQ(choices[2].codec, "fp32");
}

TEST_F(CodecTunerTest, FewerBytesWinIfComputingTakesNoTime) {
  const auto tuner = Make({{.id = CodecId::kBf16}, {.id = CodecId::kFp8E5m2}});
  for (int i = 1; i < CodecChoice::kPatience; ++i) EXPECT_FALSE(Step(*tuner, 1));
  EXPECT_TRUE(Step(*tuner, 1));
  for (uint32_t tensor = 0; tensor < 4; ++tensor) {
    EXPECT_EQ(CodecOf(*tuner, tensor), CodecId::kFp8E5m2) << tensor;
  }
  EXPECT_EQ(tuner->choices()[0].codec, "fp8_e5m2");
  EXPECT_NE(tuner->choices()[0].reason.find("at 40.0 MB/s"), std::string::npos)
      << tuner->choices()[0].reason;
}

TEST_F(CodecTunerTest, VectorsNeverUseASparseCodec) {
  const auto tuner =
      Make({{.id = CodecId::kBf16}, {.id = CodecId::kTopK, .density = .01}}, ChoiceRule::kFastest);
  EXPECT_TRUE(Step(*tuner, 1));
  EXPECT_EQ(CodecOf(*tuner, 0), CodecId::kTopK);
  EXPECT_EQ(CodecOf(*tuner, 1), CodecId::kTopK);
  EXPECT_EQ(CodecOf(*tuner, 2), CodecId::kBf16);
  EXPECT_EQ(CodecOf(*tuner, 3), CodecId::kBf16);
}

TEST_F(CodecTunerTest, AStepWithoutASampleChangesNothing) {
  const auto tuner = Make({{.id = CodecId::kFp8E5m2}}, ChoiceRule::kFastest);
  EXPECT_FALSE(tuner->EndStep());
  tuner->meter().Lost();
  EXPECT_FALSE(Step(*tuner, 1));
  EXPECT_TRUE(Step(*tuner, 1));
}

TEST_F(CodecTunerTest, AnInvalidCandidateIsAnError) {
  ClientOptions options;
  options.choose = ChoiceRule::kAuto;
  options.candidates = {{.id = CodecId::kTopK, .density = 2}};
  EXPECT_FALSE(CodecTuner::Make(partition_, options, /*device=*/nullptr, clock_).ok());
}

}  // namespace
}  // namespace thinwire::client
