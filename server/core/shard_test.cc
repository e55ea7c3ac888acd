#include "server/core/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "common/codec/sparse/index_list.h"
#include "server/core/judge.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

// Tests a shard with one value. Open() seeds the shard with 0, joins all workers, and sends their
// reads for step 0.
class ShardTest : public testing::Test {
 protected:
  void Make(const Rule& rule, const Optimizer& optimizer) {
    ShardOptions options;
    options.value_count = 1;
    options.rule = rule;
    shard_ = std::make_unique<Shard>(options, optimizer, schedule_);
  }
  void Make(const Rule& rule) { Make(rule, optimizer_); }

  void Open(const Rule& rule) { Open(rule, optimizer_); }
  void Open(const Rule& rule, const Optimizer& optimizer) {
    Make(rule, optimizer);
    workers_.clear();
    shard_->Apply(SeedEvent{Fp32Payload({0})});
    for (uint32_t i = 0; i < rule.workers; ++i) {
      workers_.push_back({WorkerId{i}});
      shard_->Apply(workers_[i].Join());
      shard_->Apply(workers_[i].Read(0));
    }
    ASSERT_TRUE(shard_->open());
  }

  const PlainDescent optimizer_;
  const Schedule schedule_ = ConstantRate();
  std::unique_ptr<Shard> shard_;
  std::vector<FakeWorker> workers_;
};

// In each round, gTop-k selects at most two of the four values of the gradient, and never a zero.
TEST_F(ShardTest, EveryAnswerOfARoundCarriesItsSelection) {
  ShardOptions options;
  options.value_count = 4;
  options.rule = Rule::Sync(2);
  options.sparse_updates = {.selection_density = 0.5,
                            .unselected_owner = UnselectedOwner::kWorkers};
  shard_ = std::make_unique<Shard>(options, optimizer_, schedule_);
  const auto taken = [this] { return DecodeIndexList(shard_->selected_list(), 4).value(); };
  const FakeWorker a{WorkerId{0}}, b{WorkerId{1}};
  shard_->Apply(SeedEvent{Fp32Payload({0, 0, 0, 0})});
  for (const FakeWorker& worker : {a, b}) {
    shard_->Apply(worker.Join());
    shard_->Apply(worker.Read(0));
  }
  EXPECT_EQ(taken(), std::vector<uint32_t>{}) << "the first answer says that there will be more";
  EXPECT_TRUE(shard_->Apply(a.Push(0, 1, {1, 4, 2, 3})).answers.empty());
  EXPECT_EQ(shard_->Apply(b.Push(0, 1, {3, 0, 4, -3})).answers.size(), 2u);
  EXPECT_EQ(taken(), (std::vector<uint32_t>{0, 2}));
  // The values that were unselected in round 0 returned to the workers, so the shard adds none of
  // them to the gradient of round 1. Only one value of that gradient is nonzero.
  shard_->Apply(a.Push(1, 1, {0, 0, 0, 8}));
  EXPECT_EQ(shard_->Apply(b.Push(1, 1, {0, 0, 0, 0})).answers.size(), 2u);
  EXPECT_EQ(taken(), std::vector<uint32_t>{3});
}

// Three accepted gradients of half the largest float would move a master past that float.
TEST_F(ShardTest, MastersOfAcceptedGradientsStayFinite) {
  const auto sgd = MakeOptimizer({.kind = OptimizerKind::kSgd}).value();
  ShardOptions options;
  options.value_count = 1;
  options.rule = Rule::Async(1);
  Shard shard(options, *sgd, schedule_);
  const FakeWorker worker{WorkerId{0}};
  shard.Apply(SeedEvent{Fp32Payload({0})});
  shard.Apply(worker.Join());
  shard.Apply(worker.Read(0));
  const auto push = [&](uint64_t step, float value) {
    return shard.Apply(worker.Push(step, 1, {value})).judgement->verdict;
  };
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_FALSE(shard.saturated());
    EXPECT_EQ(push(step, -1.7e38f), Verdict::kAccept);
  }
  EXPECT_EQ(shard.masters()[0], std::numeric_limits<float>::max());
  EXPECT_TRUE(shard.saturated());
  EXPECT_EQ(push(3, -1), Verdict::kAccept);
  EXPECT_EQ(shard.saturated_updates(), 2u);
  EXPECT_EQ(push(4, 1.7e38f), Verdict::kAccept);
  EXPECT_FALSE(shard.saturated());
  EXPECT_EQ(shard.saturated_updates(), 2u);
  EXPECT_FLOAT_EQ(shard.masters()[0], std::numeric_limits<float>::max() - 1.7e38f);
}

TEST_F(ShardTest, AJudgementHasTheStateAfterTheEvent) {
  Open(Rule::Sync(1));
  PushEvent push = workers_[0].Push(0, 1, {1});
  const Effects effects = shard_->Apply(push);
  ASSERT_TRUE(effects.judgement.has_value());
  EXPECT_EQ(effects.judgement->frontier, Step{1});
  EXPECT_EQ(effects.judgement->version, Version{1});
  EXPECT_EQ(effects.judgement->staleness, 0u);
}

TEST_F(ShardTest, StalenessCountsUpdatesSinceTheComputedVersion) {
  Open(Rule::Async(2));
  for (uint64_t step = 0; step < 3; ++step) shard_->Apply(workers_[0].Push(step, 1, {1}));
  PushEvent push = workers_[1].Push(0, 1, {1});
  push.computed_version = Version{1};
  EXPECT_EQ(shard_->Apply(push).judgement->staleness, 2u);
  push.step = Step{1};
  push.computed_version = Version{kLargest};
  EXPECT_EQ(shard_->Apply(push).judgement->staleness, 0u);
}

TEST_F(ShardTest, AnswersCarryTheRequestedCodec) {
  Open(Rule::Sync(1));
  PushEvent push = workers_[0].Push(0, 1, {1});
  push.read_form = CodecId::kFp16;
  const Effects effects = shard_->Apply(push);
  const std::vector<ReadAnswer> want = {
      {WorkerId{0}, Incarnation{1}, Step{1}, CodecId::kFp16, Step{1}}};
  EXPECT_EQ(effects.answers, want);
}

TEST_F(ShardTest, AReadOfAnInvalidSenderGetsAVerdict) {
  Open(Rule::Sync(1));
  ReadEvent read = workers_[0].Read(1);
  read.generation = Generation{7};
  EXPECT_EQ(shard_->Apply(read).judgement->verdict, Verdict::kStale);
  shard_->Apply(JoinEvent{WorkerId{0}, Incarnation{2}});
  const Effects effects = shard_->Apply(workers_[0].Read(1));
  ASSERT_TRUE(effects.judgement.has_value());
  EXPECT_EQ(effects.judgement->verdict, Verdict::kFenced);
  EXPECT_EQ(effects.judgement->incarnation, Incarnation{1});
  EXPECT_EQ(effects.judgement->step, Step{1});
}

TEST_F(ShardTest, AnEarlyPushIsNoReadAndMayBeRepeated) {
  Open(Rule::Sync(2));
  EXPECT_EQ(shard_->Apply(workers_[0].Push(1, 1, {1})).judgement->verdict, Verdict::kEarly);
  EXPECT_EQ(shard_->next(WorkerId{0}), Step{0});
  shard_->Apply(workers_[0].Push(0, 1, {1}));
  shard_->Apply(workers_[1].Push(0, 1, {1}));
  EXPECT_EQ(shard_->Apply(workers_[0].Push(1, 1, {1})).judgement->verdict, Verdict::kAccept);
}

TEST_F(ShardTest, AMessageMakesAnExpiredWorkerLiveAgain) {
  Open(Rule::Sync(2));
  shard_->Apply(workers_[1].Expire());
  EXPECT_EQ(shard_->Apply(workers_[1].Push(1, 1, {1})).judgement->verdict, Verdict::kEarly);
  EXPECT_TRUE(shard_->Apply(workers_[0].Push(0, 1, {1})).rounds.empty());
}

TEST_F(ShardTest, LeaveAndExpiryOfAnOlderIncarnationChangeNothing) {
  Open(Rule::Sync(2));
  const FakeWorker successor = {WorkerId{1}, Incarnation{2}};
  shard_->Apply(successor.Join());
  shard_->Apply(successor.Read(0));
  shard_->Apply(workers_[1].Expire());
  shard_->Apply(workers_[1].Leave());
  EXPECT_TRUE(shard_->Apply(workers_[0].Push(0, 1, {1})).rounds.empty());
}

TEST_F(ShardTest, SeveralRoundsCloseInOneEvent) {
  Open(Rule::Sync(2));
  shard_->Apply(workers_[0].Push(0, 1, {3}));
  shard_->Apply(workers_[0].Read(5));
  const Effects effects = shard_->Apply(workers_[1].Read(7));
  EXPECT_EQ(effects.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}}}, {Step{4}, {}}}));
  EXPECT_EQ(shard_->frontier(), Step{5});
  EXPECT_EQ(shard_->version(), Version{1});
  EXPECT_EQ(effects.answers.size(), 1u);
}

TEST_F(ShardTest, EmptyRoundsCloseTogether) {
  Open(Rule::Sync(1));
  const Effects effects = shard_->Apply(workers_[0].Read(kLargest));
  EXPECT_EQ(effects.rounds, (std::vector<ClosedRound>{{Step{kLargest - 1}, {}}}));
  EXPECT_EQ(effects.answers.size(), 1u);
  EXPECT_EQ(shard_->frontier(), Step{kLargest});
  EXPECT_EQ(shard_->version(), Version{0});
}

// Otherwise a worker would use the mean gradient of the round before once more.
TEST_F(ShardTest, AfterARoundWithoutGradientsAnAverageIsZero) {
  const auto average = MakeOptimizer({.kind = OptimizerKind::kAverage}).value();
  Open(Rule::Sync(2), *average);
  const FakeWorker& a = workers_[0];
  const FakeWorker& b = workers_[1];
  shard_->Apply(a.Push(0, 1, {4}));
  shard_->Apply(b.Push(0, 3, {8}));
  EXPECT_EQ(shard_->masters()[0], 7);
  shard_->Apply(a.PushNothing(1));
  shard_->Apply(b.PushNothing(1));
  EXPECT_EQ(shard_->masters()[0], 0);
  EXPECT_EQ(shard_->version(), Version{2}) << "readers get the new value";
  shard_->Apply(a.PushNothing(2));
  shard_->Apply(b.Push(2, 2, {-3}));
  EXPECT_EQ(shard_->masters()[0], -3);
}

TEST_F(ShardTest, StepsSaturateAtTheLargest) {
  Open(Rule::Async(1));
  EXPECT_EQ(shard_->Apply(workers_[0].Push(kLargest, 1, {1})).judgement->verdict, Verdict::kAccept);
  EXPECT_TRUE(shard_->Apply(workers_[0].Push(kLargest, 1, {1})).judgement->again);
  EXPECT_EQ(shard_->version(), Version{1});
}

TEST_F(ShardTest, AfterTheStartTimeoutOneWorkerOpensTheShard) {
  Make(Rule::Sync(2));
  shard_->Apply(SeedEvent{Fp32Payload({0})});
  EXPECT_FALSE(shard_->Apply(OpenEvent{}).opened);
  const FakeWorker worker = {WorkerId{1}};
  EXPECT_FALSE(shard_->Apply(worker.Join()).opened);
  EXPECT_TRUE(shard_->Apply(worker.Read(0)).opened);
}

TEST_F(ShardTest, OnlyLiveWorkersOpenAShard) {
  Make(Rule::Sync(2));
  const FakeWorker a = {WorkerId{0}};
  const FakeWorker b = {WorkerId{1}};
  shard_->Apply(a.Join());
  shard_->Apply(b.Join());
  shard_->Apply(a.Read(0));
  shard_->Apply(a.Expire());
  shard_->Apply(b.Read(0));
  EXPECT_FALSE(shard_->Apply(SeedEvent{Fp32Payload({0})}).opened);
  const Effects effects = shard_->Apply(a.Return());
  EXPECT_TRUE(effects.opened);
  EXPECT_EQ(effects.answers.size(), 2u);
}

TEST_F(ShardTest, TheDepartureOfTheLastLiveWorkerClosesTheOpenRound) {
  using Depart = Effects (*)(Shard&, const FakeWorker&);
  const Depart departures[] = {
      [](Shard& shard, const FakeWorker& worker) { return shard.Apply(worker.Leave()); },
      [](Shard& shard, const FakeWorker& worker) { return shard.Apply(worker.Expire()); },
      [](Shard& shard, const FakeWorker& worker) {
        return shard.Apply(FakeWorker{worker.worker, Incarnation{2}}.Join());
      }};
  for (const Depart depart : departures) {
    Open(Rule::Sync(2));
    shard_->Apply(workers_[0].Push(0, 1, {3}));
    shard_->Apply(workers_[0].Leave());
    const Effects effects = depart(*shard_, workers_[1]);
    EXPECT_EQ(effects.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}}}}));
    EXPECT_EQ(shard_->frontier(), Step{1});
    EXPECT_EQ(shard_->masters()[0], -3);
    EXPECT_TRUE(shard_->CanSave());
  }
}

TEST_F(ShardTest, TheFrontierAfterAllDeparturesDoesNotDependOnTheirOrder) {
  const std::vector<uint32_t> orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const std::vector<uint32_t>& order : orders) {
    Open(Rule::Sync(3));
    shard_->Apply(workers_[0].Push(0, 1, {3}));
    shard_->Apply(workers_[1].Read(2));
    for (const uint32_t w : order) shard_->Apply(workers_[w].Leave());
    EXPECT_EQ(shard_->frontier(), Step{2});
    EXPECT_EQ(shard_->version(), Version{1});
  }
}

TEST_F(ShardTest, AWorkerThatReturnsAfterTheLastDepartureIsLate) {
  Open(Rule::Sync(2));
  shard_->Apply(workers_[0].Push(0, 1, {3}));
  shard_->Apply(workers_[0].Expire());
  shard_->Apply(workers_[1].Expire());
  EXPECT_EQ(shard_->Apply(workers_[1].Push(0, 1, {5})).judgement->verdict, Verdict::kLate);
  EXPECT_EQ(shard_->version(), Version{1});
}

TEST_F(ShardTest, TheFrontierDoesNotFallForAReturningWorker) {
  Open(Rule::Ssp(2, 0));
  shard_->Apply(workers_[1].Expire());
  for (uint64_t step = 0; step < 4; ++step) shard_->Apply(workers_[0].Push(step, 1, {1}));
  EXPECT_EQ(shard_->frontier(), Step{4});
  shard_->Apply(workers_[1].Return());
  EXPECT_EQ(shard_->frontier(), Step{4});
  EXPECT_EQ(shard_->Apply(workers_[1].Push(0, 1, {1})).judgement->verdict, Verdict::kLate);
  shard_->Apply(workers_[0].Push(4, 1, {1}));
  ASSERT_EQ(shard_->BlockedReads().size(), 1u);
  EXPECT_EQ(shard_->BlockedReads()[0].unfinished, std::vector<WorkerId>{WorkerId{1}});
}

TEST_F(ShardTest, APayloadIsReleasedWithItsEvent) {
  Open(Rule::Sync(2));
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  {
    PushEvent push = workers_[1].Push(0, 1, {1});
    push.payload.Hold(std::move(token));
    shard_->Apply(push);
  }
  EXPECT_TRUE(watch.expired());
}

TEST_F(ShardTest, AnOrderedPayloadWaitsForLowerWorkersUntilTheyLeave) {
  Open(Rule::Sync(3, true));
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  {
    PushEvent push = workers_[1].Push(0, 1, {1});
    push.payload.Hold(std::move(token));
    shard_->Apply(push);
  }
  EXPECT_FALSE(watch.expired());
  shard_->Apply(workers_[2].PushNothing(0));
  EXPECT_FALSE(watch.expired());
  shard_->Apply(workers_[0].PushNothing(0));
  EXPECT_TRUE(watch.expired());
}

// 3e38 is finite in fp32, but its product with 2, the number of examples, is not.
TEST_F(ShardTest, AGradientThatWouldOverflowTheSumIsRefused) {
  Open(Rule::Async(1));
  const Effects effects = shard_->Apply(workers_[0].Push(0, 2, {3e38f}));
  EXPECT_EQ(effects.judgement->verdict, Verdict::kRefused);
  EXPECT_EQ(shard_->version(), Version{0});
  EXPECT_EQ(shard_->masters()[0], 0);
  EXPECT_EQ(shard_->next(WorkerId{0}), Step{1});
}

TEST_F(ShardTest, TheLargestAcceptedValueKeepsMastersFinite) {
  for (const Rule& rule : {Rule::Sync(3), Rule::Sync(3, true), Rule::Ssp(3, 0, 3)}) {
    Open(rule);
    const float largest = LargestAccepted(7, rule.MostFolded());
    for (const FakeWorker& worker : workers_) {
      EXPECT_EQ(shard_->Apply(worker.Push(0, 7, {largest})).judgement->verdict, Verdict::kAccept);
    }
    EXPECT_EQ(shard_->version(), Version{1});
    EXPECT_TRUE(std::isfinite(shard_->masters()[0]));
    EXPECT_LT(shard_->masters()[0], -1e36f);
  }
}

// Runs a round in every order of arrival of the pushes. During the round, one worker expires and
// returns.
TEST_F(ShardTest, AnOrderedRoundGivesTheSameBitsInAnyArrivalOrder) {
  const float values[] = {1e8f, 1.0f, -1e8f, 3.0f};
  std::vector<uint32_t> order = {0, 1, 2, 3};
  do {
    Open(Rule::Sync(4, true));
    shard_->Apply(workers_[order[2]].Expire());
    for (const uint32_t w : order) shard_->Apply(workers_[w].Push(0, 1, {values[w]}));
    EXPECT_EQ(shard_->masters()[0], -((((1e8f + 1.0f) - 1e8f) + 3.0f) * 0.25f));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ShardTest, ASuccessorOfTheLastLiveWorkerTriggersTheUpdate) {
  Open(Rule::Async(1, 10));
  shard_->Apply(workers_[0].Push(0, 1, {3}));
  EXPECT_EQ(shard_->version(), Version{0});
  shard_->Apply(JoinEvent{WorkerId{0}, Incarnation{2}});
  EXPECT_EQ(shard_->masters()[0], -3);
}

// Returns RULE for a job that may have up to MAX_WORKERS workers.
Rule WithRoom(Rule rule, uint32_t max_workers) {
  rule.max_workers = max_workers;
  return rule;
}

TEST_F(ShardTest, ANewRuleChangesTheQuorumOfTheOpenRound) {
  Open(WithRoom(Rule::Backup(3, 1), 5));
  shard_->Apply(RuleEvent{WithRoom(Rule::Backup(4, 1), 5)});
  const FakeWorker added{WorkerId{3}};
  EXPECT_EQ(shard_->Apply(added.Join()).join->frontier, Step{0});
  shard_->Apply(added.Read(0));
  EXPECT_TRUE(shard_->Apply(workers_[0].Push(0, 1, {1})).rounds.empty());
  EXPECT_TRUE(shard_->Apply(workers_[1].Push(0, 1, {1})).rounds.empty())
      << "two were enough before";
  EXPECT_EQ(shard_->Apply(added.Push(0, 1, {1})).rounds.size(), 1u);
}

TEST_F(ShardTest, ASmallerRuleClosesARoundThatHasEnoughGradients) {
  Open(Rule::Backup(4, 1));
  shard_->Apply(workers_[0].Push(0, 1, {1}));
  shard_->Apply(workers_[1].Push(0, 1, {1}));
  EXPECT_EQ(shard_->Apply(RuleEvent{WithRoom(Rule::Backup(3, 1), 4)}).rounds.size(), 1u);
}

TEST_F(ShardTest, AShutShardWaitsForAllWorkersAgain) {
  Open(Rule::Sync(2));
  for (const FakeWorker& worker : workers_) shard_->Apply(worker.Leave());
  shard_->Apply(ShutEvent{});
  EXPECT_FALSE(shard_->open());
  const FakeWorker first{WorkerId{0}, Incarnation{2}}, second{WorkerId{1}, Incarnation{2}};
  shard_->Apply(first.Join());
  EXPECT_TRUE(shard_->Apply(first.Read(0)).answers.empty());
  shard_->Apply(second.Join());
  EXPECT_EQ(shard_->Apply(second.Read(0)).answers.size(), 2u);
}

TEST_F(ShardTest, ARestoredShardFollowsItsLastRule) {
  Open(WithRoom(Rule::Backup(3, 1), 5));
  EXPECT_EQ(shard_->Save().rule, std::nullopt) << "the rule of the job file";
  const Rule rule = WithRoom(Rule::Backup(5, 1), 5);
  shard_->Apply(RuleEvent{rule});
  ShardSnapshot snapshot = shard_->Save();
  EXPECT_EQ(snapshot.rule, rule);
  Make(WithRoom(Rule::Backup(3, 1), 5));
  ASSERT_TRUE(shard_->Restore(snapshot).ok());
  EXPECT_EQ(shard_->Save(), snapshot);
  Make(WithRoom(Rule::Backup(3, 1), 5));
  snapshot.rule->max_workers = 6;
  EXPECT_EQ(shard_->Restore(snapshot).message(),
            "rule: not valid for at most 5 workers (got 5 workers)");
}

TEST_F(ShardTest, OneInSixteenRoundsMeasuresTheNoise) {
  for (const Rule& rule : {Rule::Sync(2), Rule::Sync(2, /*ordered_fold=*/true)}) {
    Open(rule);
    for (uint64_t step = 0; step < 33; ++step) {
      shard_->Apply(workers_[1].Push(step, 1, {1}));
      shard_->Apply(workers_[0].Push(step, 1, {3}));
      EXPECT_EQ(shard_->noise().rounds, step / 16 + 1);
    }
    // |push|^2 is 5 in the mean, and |update|^2 = 4: S = (5 - 4) / (1 - 1/2).
    EXPECT_DOUBLE_EQ(shard_->noise().variance, 2);
    EXPECT_DOUBLE_EQ(shard_->noise().squared_gradient, 3);
  }
}

TEST_F(ShardTest, WithoutRoundsNoNoiseIsMeasured) {
  Open(Rule::Async(2));
  shard_->Apply(workers_[0].Push(0, 1, {3}));
  shard_->Apply(workers_[1].Push(0, 1, {1}));
  EXPECT_EQ(shard_->noise(), NoiseEstimate());
}

TEST_F(ShardTest, EncodedReturnsTheMastersOfTheVersion) {
  Open(Rule::Sync(1));
  shard_->Apply(workers_[0].Push(0, 1, {3}));
  EXPECT_EQ(shard_->Encoded(CodecId::kFp32), Fp32Payload({-3}).bytes());
}

}  // namespace
}  // namespace thinwire
