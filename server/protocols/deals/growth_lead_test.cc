#include "server/protocols/deals/growth_lead.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"

namespace thinwire {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// Three workers with batches of 8 examples, and a training set of 2,000 examples.
class GrowthLeadTest : public testing::Test {
 protected:
  GrowthLeadTest() {
    growth_.Begin({.batch_size = 8, .epochs = 5}, 10000);
    dealer_.Advance(Step{0}, At(0));
  }

  // Measures the next round, with this noise scale. NEXT is the largest `next` of the workers.
  void Measure(double scale, uint64_t next, const Rule& rule = Rule::Sync(3)) {
    growth_.Update({.variance = scale, .squared_gradient = 1, .rounds = ++rounds_}, Step{next},
                   rule);
  }
  void MeasureOften(double scale, uint64_t next, const Rule& rule = Rule::Sync(3)) {
    for (uint64_t i = 0; i < 10; ++i) Measure(scale, next, rule);
  }
  // Announces the next deal, of the workers below COUNT. Returns its step, or 0 if there is none.
  uint64_t Announce(uint32_t count = 3) {
    std::vector<WorkerId> live;
    for (uint32_t w = 0; w < count; ++w) live.push_back(WorkerId{w});
    const auto next = [](WorkerId) { return Step{0}; };
    seconds_ += 2;
    dealer_.Propose(live, {}, next, At(seconds_ - 1));
    const auto deal = dealer_.Propose(live, {}, next, At(seconds_));
    dealer_.Commit();
    return deal.has_value() ? deal->step() : 0;
  }
  StatusReply Status() const {
    StatusReply reply;
    growth_.FillIn(reply);
    return reply;
  }

  Dealer dealer_{3, absl::Seconds(10)};
  GrowthLead growth_{{}, dealer_};
  uint64_t rounds_ = 0;
  double seconds_ = 100;
};

TEST_F(GrowthLeadTest, TheNextDealDoublesTheBatch) {
  MeasureOften(48, 0);
  EXPECT_EQ(Announce(), Dealer::kLeastSteps);
  EXPECT_EQ(dealer_.batches(), 6u);
  EXPECT_EQ(Announce(), 0u) << "announced once";
}

TEST_F(GrowthLeadTest, ASmallNoiseScaleKeepsTheBatch) {
  MeasureOften(47, 0);
  EXPECT_EQ(dealer_.batches(), 3u);
  EXPECT_EQ(Announce(), 0u);
}

TEST_F(GrowthLeadTest, TheRatioIsThatOfTheJob) {
  Dealer dealer(3, absl::Seconds(10));
  GrowthLead growth({.ratio = 4}, dealer);
  growth.Begin({.batch_size = 8, .epochs = 5}, 10000);
  const auto measure_often = [&growth](double scale, uint64_t first_round) {
    for (uint64_t i = 0; i < 10; ++i) {
      growth.Update({.variance = scale, .squared_gradient = 1, .rounds = first_round + i}, Step{0},
                    Rule::Sync(3));
    }
  };
  measure_often(4 * 48 - 1, 1);
  EXPECT_EQ(dealer.batches(), 3u);
  measure_often(4 * 48, 11);
  EXPECT_EQ(dealer.batches(), 6u);
}

TEST_F(GrowthLeadTest, ABatchGrowsAgainWhenTheLastGrowthIsInForce) {
  MeasureOften(1e6, 0);
  const uint64_t step = Announce();
  MeasureOften(1e6, step - 1);
  EXPECT_EQ(dealer_.batches(), 6u);
  EXPECT_EQ(Status().batch(), 24u);
  MeasureOften(1e6, step);
  EXPECT_EQ(dealer_.batches(), 12u);
  EXPECT_EQ(Status().batch(), 48u);
  EXPECT_EQ(Status().accumulate(), 2u);
}

TEST_F(GrowthLeadTest, TheLargestBatchIsATenthOfTheTrainingSet) {
  for (int i = 0; i < 20; ++i) {
    MeasureOften(1e9, 1000);
    Announce();
  }
  EXPECT_EQ(dealer_.batches(), 24u) << "192 examples; a tenth of the training set are 200";
  EXPECT_EQ(Status().epoch_examples(), 2000u);
}

TEST_F(GrowthLeadTest, BackupWorkersDoNotCount) {
  MeasureOften(32, 0, Rule::Backup(3, 1));
  EXPECT_EQ(dealer_.batches(), 6u);
  EXPECT_EQ(Status().batch(), 16u);
}

TEST_F(GrowthLeadTest, WorkersThatLeaveAfterTheLastStepDoNotChangeTheStatus) {
  const std::vector<WorkerId> live = {WorkerId{2}};
  const auto next = [](WorkerId) { return Step{100}; };
  dealer_.Advance(Step{100}, At(100));
  dealer_.Propose(live, {}, next, At(101));
  const auto deal = dealer_.Propose(live, {}, next, At(102));
  ASSERT_TRUE(deal.has_value());
  dealer_.Commit();
  Measure(1, 100);
  EXPECT_EQ(Status().batch(), 24u);
  Measure(1, deal->step());
  EXPECT_EQ(Status().batch(), 24u) << "one worker takes all batches";
  EXPECT_EQ(Status().accumulate(), 3u);
}

TEST_F(GrowthLeadTest, MoreWorkersMakeTheSameBatchWithoutAccumulation) {
  Rule rule = Rule::Sync(6);
  rule.max_workers = 10;
  MeasureOften(1e6, 0, rule);
  Announce();
  Measure(1, 1000, rule);
  EXPECT_EQ(Status().batch(), 48u);
  EXPECT_EQ(Status().wished_workers(), 6u);
  Announce(4);
  Measure(1, 1000, rule);
  EXPECT_EQ(Status().batch(), 48u);
  EXPECT_EQ(Status().accumulate(), 2u) << "2, 2, 1 and 1 batches";
  EXPECT_EQ(Status().wished_workers(), 6u);
  Announce(6);
  Measure(1, 1000, rule);
  EXPECT_EQ(Status().batch(), 48u);
  EXPECT_EQ(Status().accumulate(), 1u);
  EXPECT_EQ(Status().wished_workers(), 0u);
}

TEST_F(GrowthLeadTest, TheBatchesOfTheJobFileAreKeptToo) {
  Dealer dealer(2, absl::Seconds(10));
  GrowthLead growth({}, dealer);
  growth.Begin({.batch_size = 8, .epochs = 5, .accumulate = 4}, 10000);
  StatusReply reply;
  Rule rule = Rule::Sync(2);
  rule.max_workers = 10;
  growth.Update({.variance = 1, .squared_gradient = 1, .rounds = 1}, Step{0}, rule);
  growth.FillIn(reply);
  EXPECT_EQ(reply.batch(), 64u);
  EXPECT_EQ(reply.wished_workers(), 8u);
}

TEST_F(GrowthLeadTest, TheWishAsksForTheWorkersOfTheSameBatch) {
  Rule rule = Rule::Sync(3);
  rule.max_workers = 10;
  MeasureOften(1e9, 0, rule);
  EXPECT_EQ(Status().wished_workers(), 0u) << "no worker accumulates";
  Announce();
  MeasureOften(1e9, 1000, rule);
  EXPECT_EQ(Status().wished_workers(), 6u);
  Announce();
  MeasureOften(1e9, 1000, rule);
  EXPECT_EQ(Status().wished_workers(), 10u) << "the value of max_workers";
}

TEST_F(GrowthLeadTest, AStepOfAWorkerStaysBelowItsLimit) {
  Dealer dealer(3, absl::Seconds(10));
  GrowthLead growth({.largest_batch = 1u << 30}, dealer);
  growth.Begin({.batch_size = 1u << 19, .epochs = 1}, 1u << 30);
  for (uint64_t i = 1; i < 10; ++i) {
    growth.Update({.variance = 1e12, .squared_gradient = 1, .rounds = i}, Step{0}, Rule::Sync(3));
  }
  EXPECT_EQ(dealer.batches(), 6u);
  Dealer full(3, absl::Seconds(10));
  GrowthLead none({.largest_batch = 1u << 30}, full);
  none.Begin({.batch_size = 1u << 20, .epochs = 1}, 1u << 30);
  for (uint64_t i = 1; i < 10; ++i) {
    none.Update({.variance = 1e12, .squared_gradient = 1, .rounds = i}, Step{0}, Rule::Sync(3));
  }
  EXPECT_EQ(full.batches(), 3u);
}

}  // namespace
}  // namespace thinwire
