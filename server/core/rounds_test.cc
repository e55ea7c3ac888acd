#include "server/core/rounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "server/core/optimizer/optimizer.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr WorkerId kA{0};
constexpr WorkerId kB{1};
constexpr Incarnation kFirst{1};
constexpr uint32_t kQuorum = 2;

// Two live workers and the rounds of a shard with one value.
class RoundsTest : public testing::Test {
 protected:
  RoundsTest() {
    store_.Seed(Fp32Payload({10}));
    for (const WorkerId worker : {kA, kB}) {
      workers_.Join(worker, kFirst);
      workers_.Read(worker, {.step = Step{0}});
    }
  }

  Rounds Make(const Rounds::Options& options) {
    return Rounds({.workers = workers_, .accumulator = accumulator_, .store = store_}, options);
  }
  // Folds a gradient of WORKER with one example and finishes its step.
  void Fold(WorkerId worker, float value) {
    accumulator_.Fold({.worker = worker, .examples = 1, .payload = Fp32Payload({value})});
    workers_.Finish(worker, workers_.of(worker).next, Verdict::kAccept);
  }
  static Effects Close(Rounds& rounds, bool last_departed = false) {
    Effects effects;
    rounds.Close(kQuorum, last_departed, effects);
    return effects;
  }
  Step frontier() const { return workers_.frontier(); }
  float master() const { return store_.masters()[0]; }

  PlainDescent optimizer_;
  const Schedule schedule_ = ConstantRate();
  WorkerTable workers_{2};
  Accumulator accumulator_{1};
  Store store_{1, /*planned_examples=*/0, optimizer_, schedule_};
};

TEST_F(RoundsTest, ARoundBelowItsQuorumStaysOpenWhileAWorkerMayPush) {
  Rounds rounds = Make({});
  Fold(kA, 2);
  EXPECT_EQ(Close(rounds), Effects());
  EXPECT_EQ(frontier(), Step{0});
  EXPECT_EQ(master(), 10);
}

TEST_F(RoundsTest, TheQuorumClosesARoundWithTheMeanOfItsGradients) {
  Rounds rounds = Make({});
  Fold(kA, 2);
  Fold(kB, 4);
  EXPECT_EQ(Close(rounds).rounds, (std::vector<ClosedRound>{{Step{0}, {kA, kB}}}));
  EXPECT_EQ(frontier(), Step{1});
  EXPECT_EQ(master(), 7);
}

TEST_F(RoundsTest, ARoundBelowItsQuorumClosesWhenAllLiveWorkersHaveFinishedIt) {
  Rounds rounds = Make({});
  Fold(kA, 2);
  workers_.Leave(kB);
  EXPECT_EQ(Close(rounds).rounds, (std::vector<ClosedRound>{{Step{0}, {kA}}}));
  EXPECT_EQ(master(), 8);
}

TEST_F(RoundsTest, AfterTheLastDepartureTheRoundsOfTheFastestWorkerClose) {
  Rounds rounds = Make({});
  workers_.Read(kA, {.step = Step{3}});
  workers_.Leave(kA);
  workers_.Leave(kB);
  EXPECT_EQ(Close(rounds), Effects());
  EXPECT_EQ(Close(rounds, /*last_departed=*/true).rounds,
            (std::vector<ClosedRound>{{Step{2}, {}}}));
  EXPECT_EQ(frontier(), Step{3});
}

TEST_F(RoundsTest, ConsecutiveRoundsWithoutGradientsCloseAtOnce) {
  Rounds rounds = Make({});
  constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
  for (const WorkerId worker : {kA, kB}) workers_.Read(worker, {.step = Step{kFar}});
  EXPECT_EQ(Close(rounds).rounds, (std::vector<ClosedRound>{{Step{kFar - 1}, {}}}));
  EXPECT_EQ(frontier(), Step{kFar});
  EXPECT_EQ(store_.version(), Version{0});
}

TEST_F(RoundsTest, WhereMastersHoldAnAverageARoundWithoutGradientsClearsThem) {
  Rounds rounds = Make({.holds_average = true});
  for (const WorkerId worker : {kA, kB}) workers_.Read(worker, {.step = Step{1}});
  Close(rounds);
  EXPECT_EQ(master(), 0);
  EXPECT_EQ(store_.version(), Version{1});
}

TEST_F(RoundsTest, AFullRoundWaitsForItsOwnSumEvent) {
  Rounds rounds = Make({.clip_norm = 1});
  Fold(kA, 2);
  Fold(kB, 4);
  const Effects effects = Close(rounds);
  EXPECT_EQ(effects.full_round, (FullRound{Step{0}, {.update = 9}}));
  EXPECT_TRUE(effects.rounds.empty());
  EXPECT_TRUE(rounds.full());
  EXPECT_EQ(rounds.next_frontier(), Step{1});
  rounds.Take({.step = Step{1}, .sums = {.update = 100}});
  EXPECT_EQ(Close(rounds), Effects());
  rounds.Take({.step = Step{0}, .sums = {.update = 4}});
  EXPECT_EQ(Close(rounds).rounds, (std::vector<ClosedRound>{{Step{0}, {kA, kB}}}));
  EXPECT_FALSE(rounds.full());
  EXPECT_EQ(frontier(), Step{1});
  EXPECT_EQ(master(), 8.5);
}

TEST_F(RoundsTest, AFactorClipsOneRoundOnly) {
  Rounds rounds = Make({.clip_norm = 1});
  for (const float expected : {8.5f, 7.f}) {
    Fold(kA, 2);
    Fold(kB, 4);
    const Effects effects = Close(rounds);
    ASSERT_TRUE(effects.full_round.has_value());
    rounds.Take({.step = frontier(), .sums = {.update = 4}});
    Close(rounds);
    EXPECT_EQ(master(), expected);
  }
}

// The noise needs the pushes of a round, of which there is none with a quorum of 1.
TEST_F(RoundsTest, OneRoundIn16IsMeasured) {
  Rounds rounds = Make({});
  for (uint64_t step = 0; step < 33; ++step) {
    for (const WorkerId worker : {kA, kB}) {
      Gradient gradient = {.worker = worker, .examples = 1, .payload = Fp32Payload({2})};
      rounds.Measure(gradient, kQuorum);
      Fold(worker, 2);
    }
    Close(rounds);
  }
  EXPECT_EQ(frontier(), Step{33});
  EXPECT_EQ(rounds.noise().rounds, 3u);
}

}  // namespace
}  // namespace thinwire
