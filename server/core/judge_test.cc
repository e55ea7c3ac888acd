#include "server/core/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/spec/rule.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
const FakeWorker kWorker = {WorkerId{0}, Incarnation{2}};

// Returns the input of Judge() for an open shard with frontier 5 and slack 1, and for a worker that
// has finished all steps below 5.
JudgeInput AtFive() {
  JudgeInput input;
  input.generation = Generation{0};
  input.worker.incarnation = Incarnation{2};
  input.worker.next = Step{5};
  input.worker.read = Step{5};
  input.frontier = Step{5};
  input.slack = 1;
  input.open = true;
  return input;
}

JudgeInput AfterPushing(uint64_t step, Verdict verdict) {
  JudgeInput input = AtFive();
  input.worker.last_push = JudgedPush{Step{step}, verdict};
  return input;
}

PushEvent PushOf(uint64_t step) { return kWorker.Push(step, 1, {1.0f}); }

TEST(JudgeTest, AcceptsAStepWithinTheBounds) {
  EXPECT_EQ(Judge(AtFive(), PushOf(5)), Decision{Verdict::kAccept});
  EXPECT_EQ(Judge(AtFive(), PushOf(6)), Decision{Verdict::kAccept});
}

TEST(JudgeTest, AnotherGenerationIsStaleForAnySender) {
  PushEvent push = PushOf(5);
  push.generation = Generation{1};
  EXPECT_EQ(Judge(AtFive(), push), Decision{Verdict::kStale});
  push.incarnation = Incarnation{1};
  EXPECT_EQ(Judge(AtFive(), push), Decision{Verdict::kStale});
}

TEST(JudgeTest, AnIncarnationThatNeverJoinedIsStale) {
  PushEvent push = PushOf(5);
  push.incarnation = Incarnation{3};
  EXPECT_EQ(Judge(AtFive(), push), Decision{Verdict::kStale});
  JudgeInput input = AtFive();
  input.worker = {};
  push.incarnation = Incarnation{0};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kStale});
}

TEST(JudgeTest, AnOlderIncarnationIsFencedEvenIfItsPushWasJudged) {
  JudgeInput input = AfterPushing(4, Verdict::kAccept);
  PushEvent push = PushOf(4);
  push.incarnation = Incarnation{1};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kFenced});
}

TEST(JudgeTest, AWorkerThatLeftIsFenced) {
  JudgeInput input = AtFive();
  input.worker.left = true;
  EXPECT_EQ(Judge(input, PushOf(5)), Decision{Verdict::kFenced});
}

TEST(JudgeTest, ARepeatedPushGetsItsVerdictAgain) {
  for (const Verdict verdict : {Verdict::kAccept, Verdict::kLate, Verdict::kRefused}) {
    EXPECT_EQ(Judge(AfterPushing(4, verdict), PushOf(4)), (Decision{verdict, true}));
  }
}

TEST(JudgeTest, AStoredVerdictDoesNotDependOnThePayload) {
  const PushEvent push = kWorker.Push(4, 1, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(Judge(AfterPushing(4, Verdict::kAccept), push), (Decision{Verdict::kAccept, true}));
}

TEST(JudgeTest, AStepBelowTheLastPushIsARepeatAndNotLate) {
  EXPECT_EQ(Judge(AfterPushing(4, Verdict::kAccept), PushOf(3)), Decision{Verdict::kRepeat});
}

TEST(JudgeTest, AStepBelowTheFrontierOrNextIsLate) {
  EXPECT_EQ(Judge(AtFive(), PushOf(4)), Decision{Verdict::kLate});
  JudgeInput ahead = AtFive();
  ahead.worker.next = Step{6};
  EXPECT_EQ(Judge(ahead, PushOf(5)), Decision{Verdict::kLate});
  JudgeInput behind = AtFive();
  behind.worker.next = Step{2};
  EXPECT_EQ(Judge(behind, PushOf(4)), Decision{Verdict::kLate});
}

TEST(JudgeTest, AStepBeyondTheSlackIsEarly) {
  EXPECT_EQ(Judge(AtFive(), PushOf(7)), Decision{Verdict::kEarly});
  EXPECT_EQ(Judge(AtFive(), PushOf(kLargest)), Decision{Verdict::kEarly});
}

TEST(JudgeTest, NoStepIsEarlyWithoutABound) {
  JudgeInput input = AtFive();
  input.slack = kUnboundedSlack;
  EXPECT_EQ(Judge(input, PushOf(kLargest)), Decision{Verdict::kAccept});
}

TEST(JudgeTest, AShardThatIsNotOpenAcceptsNothingButDetectsLateSteps) {
  JudgeInput shut = AtFive();
  shut.open = false;
  EXPECT_EQ(Judge(shut, PushOf(5)), Decision{Verdict::kEarly});
  EXPECT_EQ(Judge(shut, PushOf(4)), Decision{Verdict::kLate});
}

TEST(JudgeTest, Promise7ANonFiniteValueIsRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(5, 1, {bad})), Decision{Verdict::kRefused});
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(4, 1, {bad})), Decision{Verdict::kLate});
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(7, 1, {bad})), Decision{Verdict::kEarly});
  }
}

TEST(JudgeTest, AValueThatCouldOverflowTheSumIsRefused) {
  for (const uint32_t examples : {1u, 32u, 0xffffffffu}) {
    for (const uint32_t max_folded : {1u, 3u, 0xffffffffu}) {
      JudgeInput input = AtFive();
      input.max_folded = max_folded;
      const float largest = LargestAccepted(examples, max_folded);
      const float above = std::nextafter(largest, std::numeric_limits<float>::max());
      EXPECT_EQ(Judge(input, kWorker.Push(5, examples, {-largest})), Decision{Verdict::kAccept});
      EXPECT_EQ(Judge(input, kWorker.Push(5, examples, {above})), Decision{Verdict::kRefused});
      EXPECT_EQ(Judge(input, kWorker.Push(5, examples, {-above})), Decision{Verdict::kRefused});
      EXPECT_EQ(Judge(input, kWorker.Push(4, examples, {above})), Decision{Verdict::kLate});
    }
  }
}

TEST(JudgeTest, APushOfWeightZeroIsAccepted) {
  EXPECT_EQ(Judge(AtFive(), kWorker.PushNothing(5)), Decision{Verdict::kAccept});
  EXPECT_EQ(Judge(AtFive(), kWorker.PushNothing(4)), Decision{Verdict::kLate});
}

TEST(JudgeTest, StalenessIsTheDistanceToTheComputedVersion) {
  PushEvent push = PushOf(5);
  push.computed_version = Version{4};
  EXPECT_EQ(StalenessOf(push, Version{7}), 3u);
  EXPECT_EQ(StalenessOf(push, Version{4}), 0u);
  push.computed_version = Version{kLargest};
  EXPECT_EQ(StalenessOf(push, Version{7}), 0u);
}

TEST(JudgeTest, AGradientAboveTheStalenessBoundIsRefused) {
  JudgeInput input = AtFive();
  input.version = Version{7};
  input.staleness = {.policy = StalenessPolicy::kDrop, .bound = 2};
  PushEvent push = PushOf(5);
  push.computed_version = Version{5};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kAccept});
  push.computed_version = Version{4};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kRefused});
  push.examples = 0;
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kAccept}) << "it has no gradient";
  push.examples = 1;
  push.step = Step{4};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kLate});
  input.staleness.policy = StalenessPolicy::kScale;
  push.step = Step{5};
  EXPECT_EQ(Judge(input, push), Decision{Verdict::kAccept});
}

}  // namespace
}  // namespace thinwire
