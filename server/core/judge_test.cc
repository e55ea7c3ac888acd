#include "server/core/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/core/rule.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
const FakeWorker kWorker = {WorkerId{0}, Incarnation{2}};

// An open shard of one value at frontier 5, slack 1; the worker has finished the steps below 5.
Standing AtFive() {
  Standing standing;
  standing.generation = Generation{0};
  standing.worker.incarnation = Incarnation{2};
  standing.worker.next = Step{5};
  standing.worker.read = Step{5};
  standing.frontier = Step{5};
  standing.slack = 1;
  standing.open = true;
  return standing;
}

Standing AfterPushing(uint64_t step, Verdict verdict) {
  Standing standing = AtFive();
  standing.worker.last_push = JudgedPush{Step{step}, verdict};
  return standing;
}

PushEvent PushOf(uint64_t step) { return kWorker.Push(step, 1, {1.0f}); }

TEST(JudgeTest, TakesWhatIsNeitherLateNorEarly) {
  EXPECT_EQ(Judge(AtFive(), PushOf(5)), Ruling{Verdict::kAccept});
  EXPECT_EQ(Judge(AtFive(), PushOf(6)), Ruling{Verdict::kAccept});
}

TEST(JudgeTest, AnotherGenerationIsStaleWhoeverSpeaks) {
  PushEvent push = PushOf(5);
  push.generation = Generation{1};
  EXPECT_EQ(Judge(AtFive(), push), Ruling{Verdict::kStale});
  push.incarnation = Incarnation{1};
  EXPECT_EQ(Judge(AtFive(), push), Ruling{Verdict::kStale});
}

TEST(JudgeTest, AnIncarnationThatNeverJoinedIsStale) {
  PushEvent push = PushOf(5);
  push.incarnation = Incarnation{3};
  EXPECT_EQ(Judge(AtFive(), push), Ruling{Verdict::kStale});
  Standing standing = AtFive();
  standing.worker = {};
  push.incarnation = Incarnation{0};
  EXPECT_EQ(Judge(standing, push), Ruling{Verdict::kStale});
}

TEST(JudgeTest, AnOlderIncarnationIsFencedAlsoWhereItsPushIsKnown) {
  Standing standing = AfterPushing(4, Verdict::kAccept);
  PushEvent push = PushOf(4);
  push.incarnation = Incarnation{1};
  EXPECT_EQ(Judge(standing, push), Ruling{Verdict::kFenced});
}

TEST(JudgeTest, WhoHasLeftIsFenced) {
  Standing standing = AtFive();
  standing.worker.left = true;
  EXPECT_EQ(Judge(standing, PushOf(5)), Ruling{Verdict::kFenced});
}

TEST(JudgeTest, TheLastPushGetsItsVerdictAgain) {
  for (const Verdict verdict : {Verdict::kAccept, Verdict::kLate, Verdict::kRefused}) {
    EXPECT_EQ(Judge(AfterPushing(4, verdict), PushOf(4)), (Ruling{verdict, true}));
  }
}

TEST(JudgeTest, AStoredVerdictOutlivesAnotherPayload) {
  const PushEvent push = kWorker.Push(4, 1, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(Judge(AfterPushing(4, Verdict::kAccept), push), (Ruling{Verdict::kAccept, true}));
}

TEST(JudgeTest, BelowTheLastPushIsARepeatAndNotLate) {
  EXPECT_EQ(Judge(AfterPushing(4, Verdict::kAccept), PushOf(3)), Ruling{Verdict::kRepeat});
}

TEST(JudgeTest, BelowTheFrontierOrNextIsLate) {
  EXPECT_EQ(Judge(AtFive(), PushOf(4)), Ruling{Verdict::kLate});
  Standing ahead = AtFive();
  ahead.worker.next = Step{6};
  EXPECT_EQ(Judge(ahead, PushOf(5)), Ruling{Verdict::kLate});
  Standing behind = AtFive();
  behind.worker.next = Step{2};
  EXPECT_EQ(Judge(behind, PushOf(4)), Ruling{Verdict::kLate});
}

TEST(JudgeTest, BeyondTheSlackIsEarly) {
  EXPECT_EQ(Judge(AtFive(), PushOf(7)), Ruling{Verdict::kEarly});
  EXPECT_EQ(Judge(AtFive(), PushOf(kLargest)), Ruling{Verdict::kEarly});
}

TEST(JudgeTest, NothingIsEarlyWithoutABound) {
  Standing standing = AtFive();
  standing.slack = kUnboundedSlack;
  EXPECT_EQ(Judge(standing, PushOf(kLargest)), Ruling{Verdict::kAccept});
}

TEST(JudgeTest, AShutShardTakesNothingButKnowsWhatIsLate) {
  Standing shut = AtFive();
  shut.open = false;
  EXPECT_EQ(Judge(shut, PushOf(5)), Ruling{Verdict::kEarly});
  EXPECT_EQ(Judge(shut, PushOf(4)), Ruling{Verdict::kLate});
}

TEST(JudgeTest, WhatIsNotFiniteIsRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(5, 1, {bad})), Ruling{Verdict::kRefused});
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(4, 1, {bad})), Ruling{Verdict::kLate});
    EXPECT_EQ(Judge(AtFive(), kWorker.Push(7, 1, {bad})), Ruling{Verdict::kEarly});
  }
}

TEST(JudgeTest, WhatTheSumMightNotHoldIsRefused) {
  for (const uint32_t examples : {1u, 32u, 0xffffffffu}) {
    for (const uint32_t most_folded : {1u, 3u, 0xffffffffu}) {
      Standing standing = AtFive();
      standing.most_folded = most_folded;
      const float largest = LargestAccepted(examples, most_folded);
      const float above = std::nextafter(largest, std::numeric_limits<float>::max());
      EXPECT_EQ(Judge(standing, kWorker.Push(5, examples, {-largest})), Ruling{Verdict::kAccept});
      EXPECT_EQ(Judge(standing, kWorker.Push(5, examples, {above})), Ruling{Verdict::kRefused});
      EXPECT_EQ(Judge(standing, kWorker.Push(5, examples, {-above})), Ruling{Verdict::kRefused});
      EXPECT_EQ(Judge(standing, kWorker.Push(4, examples, {above})), Ruling{Verdict::kLate});
    }
  }
}

TEST(JudgeTest, NothingToGiveIsAccepted) {
  EXPECT_EQ(Judge(AtFive(), kWorker.PushNothing(5)), Ruling{Verdict::kAccept});
  EXPECT_EQ(Judge(AtFive(), kWorker.PushNothing(4)), Ruling{Verdict::kLate});
}

}  // namespace
}  // namespace thinwire
