#include "server/protocols/rules/wait_tuner.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace thinwire {
namespace {

// Records COUNT steps of four workers, of which worker 3 takes 3 s and the others take 1 s.
void RecordSteps(uint64_t count, StepTimes& times) {
  constexpr absl::Time kStart = absl::UnixEpoch();
  for (uint64_t s = 0; s < count; ++s) {
    for (uint32_t w = 0; w < 4; ++w) {
      Effects begun;
      begun.answers.push_back({.worker = WorkerId{w}, .step = Step{s}});
      times.Record(ReadEvent{}, begun, kStart);
      Effects judged;
      judged.judgement.emplace();
      PushEvent push;
      push.worker = WorkerId{w};
      push.step = Step{s};
      push.examples = 8;
      times.Record(push, judged, kStart + absl::Seconds(w == 3 ? 3 : 1));
    }
  }
}

TEST(WaitTunerTest, ASlowWorkerBecomesTheBackupWorkerWhenItsTimesAreKnown) {
  WaitTuner tuner(Fold::kRound);
  StepTimes times(8);
  RecordSteps(7, times);
  EXPECT_TRUE(tuner.Due(Step{7}));
  EXPECT_FALSE(tuner.Choose(Rule::Sync(4), Step{7}, times, {}).has_value());
  EXPECT_TRUE(tuner.Due(Step{7}));
  RecordSteps(1, times);
  EXPECT_FALSE(tuner.Choose(Rule::Sync(5), Step{8}, times, {}).has_value()) << "worker 4";
  const auto chosen = tuner.Choose(Rule::Sync(4), Step{8}, times, {});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->rule, Rule::Backup(4, 1));
  EXPECT_FALSE(tuner.Choose(chosen->rule, Step{32}, times, {}).has_value());
}

TEST(WaitTunerTest, TheChoiceIsRepeatedMoreAndMoreRarely) {
  WaitTuner tuner(Fold::kRound);
  StepTimes times(4);
  RecordSteps(20, times);
  std::vector<uint64_t> steps;
  for (uint64_t s = 8; s < 400; ++s) {
    if (!tuner.Due(Step{s})) continue;
    steps.push_back(s);
    tuner.Choose(Rule::Backup(4, 1), Step{s}, times, {});
  }
  EXPECT_EQ(steps, (std::vector<uint64_t>{8, 16, 32, 64, 128, 228, 328}));
}

TEST(WaitTunerTest, TheNoiseScaleCountsWhenItIsCertainEnough) {
  StepTimes times(4);
  RecordSteps(20, times);
  // With much noise, half of the workers bring half of the progress.
  WaitTuner tuner(Fold::kRound);
  NoiseEstimate noise = {.variance = 1e-3, .squared_gradient = 1, .rounds = 3};
  const auto uncertain = tuner.Choose(Rule::Sync(4), Step{20}, times, noise);
  ASSERT_TRUE(uncertain.has_value());
  EXPECT_TRUE(uncertain->reason.ends_with("noise scale unknown")) << uncertain->reason;
  noise.rounds = 4;
  const auto certain = tuner.Choose(Rule::Sync(4), Step{40}, times, noise);
  ASSERT_TRUE(certain.has_value());
  EXPECT_TRUE(certain->reason.ends_with("noise scale 0.001 examples")) << certain->reason;
}

TEST(WaitTunerTest, TheSlackOfSspIsChosenAndOtherModesStay) {
  WaitTuner tuner(Fold::kPush);
  StepTimes times(4);
  RecordSteps(20, times);
  const auto chosen = tuner.Choose(Rule::Ssp(4, 9), Step{20}, times, {});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->rule, Rule::Ssp(4, 0)) << "the fast workers wait in any case";
  EXPECT_FALSE(tuner.Choose(Rule::Async(4), Step{40}, times, {}).has_value());
  EXPECT_FALSE(tuner.Choose(Rule::Sync(4), Step{40}, times, {}).has_value());
}

TEST(WaitTunerTest, AStoppedTunerIsNeverDue) {
  WaitTuner tuner(Fold::kPush);
  tuner.Stop();
  EXPECT_FALSE(tuner.Due(Step{1000}));
  EXPECT_FALSE(WaitTuner(std::nullopt).Due(Step{1000}));
}

}  // namespace
}  // namespace thinwire
