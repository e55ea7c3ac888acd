#include "server/shards/step_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

constexpr WorkerId kWorker{1};

class StepTimesTest : public testing::Test {
 protected:
  // Worker 1's read of STEP is answered at SECONDS.
  void Answer(uint64_t step, int seconds) {
    Effects effects;
    effects.answers.push_back({.worker = kWorker, .step = Step{step}});
    times_.Record(ReadEvent{}, effects, At(seconds));
  }
  void Push(uint64_t step, int seconds, Verdict verdict = Verdict::kAccept, bool again = false) {
    PushEvent push;
    push.worker = kWorker;
    push.step = Step{step};
    push.examples = 6;
    Effects effects;
    effects.judgement.emplace();
    effects.judgement->verdict = verdict;
    effects.judgement->again = again;
    times_.Record(push, effects, At(seconds));
  }
  static absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
  std::vector<double> Times() const { return times_.Of(3)[1]; }

  StepTimes times_{3};
};

TEST_F(StepTimesTest, ATimeIsThatFromTheAnswerToThePush) {
  Answer(0, 10);
  Push(0, 12);
  Answer(1, 15);
  Push(1, 20, Verdict::kLate);
  EXPECT_EQ(Times(), (std::vector<double>{2, 5}));
  EXPECT_TRUE(times_.Of(3)[0].empty());
  EXPECT_EQ(times_.Of(2).size(), 2u);
  EXPECT_EQ(times_.ExamplesPerPush(3), 6);
  EXPECT_EQ(times_.ExamplesPerPush(1), 0);
}

TEST_F(StepTimesTest, ALateWorkerBeginsWithItsLastAnswer) {
  Answer(4, 10);
  Answer(7, 11);
  Push(4, 12);
  EXPECT_TRUE(Times().empty());
  Push(7, 14);
  EXPECT_EQ(Times(), std::vector<double>{3});
}

TEST_F(StepTimesTest, PushesThatFinishNoStepDoNotCount) {
  Answer(0, 10);
  Push(0, 11, Verdict::kFenced);
  Push(0, 12, Verdict::kStale);
  Push(0, 13, Verdict::kAccept, /*again=*/true);
  EXPECT_TRUE(Times().empty());
  Push(0, 14, Verdict::kRefused);
  EXPECT_EQ(Times(), std::vector<double>{4});
}

TEST_F(StepTimesTest, OldTimesAreDropped) {
  for (int s = 0; s <= static_cast<int>(StepTimes::kWindow); ++s) {
    Answer(static_cast<uint64_t>(s), 0);
    Push(static_cast<uint64_t>(s), s);
  }
  ASSERT_EQ(Times().size(), StepTimes::kWindow);
  EXPECT_EQ(Times().front(), 1);
}

TEST_F(StepTimesTest, ATimePerExampleIsAMedianOfTheLastSteps) {
  const auto seconds = [this](size_t least, size_t most) {
    return times_.SecondsPerExample(kWorker, least, most);
  };
  EXPECT_FALSE(seconds(0, 3).has_value());
  for (const int time : {60, 6, 12, 30}) {  // a push has 6 examples
    Answer(static_cast<uint64_t>(time), 0);
    Push(static_cast<uint64_t>(time), time);
  }
  EXPECT_FALSE(seconds(5, 8).has_value());
  EXPECT_FALSE(seconds(4, 3).has_value());
  EXPECT_EQ(seconds(3, 3), 2.0);
  EXPECT_EQ(seconds(4, 4), 5.0);
  EXPECT_EQ(seconds(1, 1), 5.0);
}

TEST_F(StepTimesTest, AWorkerThatGoesLosesItsTimes) {
  int checked = 0;
  for (const Event& event : {Event(LeaveEvent{kWorker, {}}), Event(ExpireEvent{kWorker, {}}),
                             Event(JoinEvent{kWorker, {}})}) {
    Answer(0, 0);
    Push(0, 1);
    Answer(1, 1);
    EXPECT_EQ(Times().size(), 1u);
    times_.Record(event, {}, At(2));
    Push(1, 3);
    EXPECT_TRUE(Times().empty());
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

}  // namespace
}  // namespace thinwire
