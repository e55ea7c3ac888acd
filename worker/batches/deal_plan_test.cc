#include "worker/batches/deal_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Deal DealOf(uint64_t step, const std::vector<uint32_t>& members,
            const std::map<uint32_t, uint64_t>& departed = {}) {
  Deal deal;
  deal.set_step(step);
  for (const uint32_t worker : members) deal.add_members(worker);
  for (const auto& [worker, next] : departed) {
    deal.add_departed()->set_worker(worker);
    deal.mutable_departed()->rbegin()->set_next(next);
  }
  return deal;
}

// Returns the positions of the worker's batch. All examples are of EPOCH.
std::vector<uint32_t> Batch(const DealPlan& plan, uint32_t worker, uint64_t step,
                            uint64_t epoch = 0) {
  std::vector<uint32_t> positions;
  for (const DealtExample& example : plan.Batch(WorkerId{worker}, Step{step})) {
    EXPECT_EQ(example.epoch, epoch);
    positions.push_back(example.position);
  }
  return positions;
}

TEST(DealPlanTest, APlanThatBeginsWithAnEpochDealsAsOneWithAllDeals) {
  DealPlan all(23, 2, 3);
  all.Add(DealOf(2, {0, 1}, {{2, 1}}));
  all.Add(DealOf(9, {0, 1, 4}));
  const uint64_t epoch = all.epoch(Step{9}) + 2;
  const uint64_t begin = all.EpochBegin(epoch).value;
  Deal first = DealOf(begin, {0, 1, 4});
  first.set_number(2);
  first.set_epoch(epoch);
  DealPlan late(23, 2, 3);
  late.Add(first);
  EXPECT_EQ(late.deal_count(), all.deal_count());
  EXPECT_EQ(late.EpochBegin(epoch), Step{begin});
  EXPECT_EQ(late.EpochBegin(0), Step{begin});
  EXPECT_EQ(late.epoch(Step{begin - 1}), epoch - 1);
  EXPECT_TRUE(late.Batch(WorkerId{0}, Step{begin - 1}).empty());
  for (DealPlan* plan : {&all, &late}) {
    plan->Add(DealOf(begin + 2, {1, 4}, {{0, begin + 1}}));
    plan->Add(DealOf(begin + 7, {0, 1, 4}));
  }
  EXPECT_EQ(late.deal_count(), all.deal_count());
  int example_count = 0;
  for (uint64_t step = begin; step < begin + 40; ++step) {
    EXPECT_EQ(late.epoch(Step{step}), all.epoch(Step{step}));
    for (uint32_t worker = 0; worker < 5; ++worker) {
      const auto batch = all.Batch(WorkerId{worker}, Step{step});
      EXPECT_EQ(late.Batch(WorkerId{worker}, Step{step}), batch) << "step " << step;
      example_count += static_cast<int>(batch.size());
    }
  }
  EXPECT_GT(example_count, 100);
  late.ForgetDeals();
  EXPECT_EQ(late.deal_count(), 0u);
  EXPECT_EQ(late.Batch(WorkerId{2}, Step{0}).size(), 2u);
}

TEST(DealPlanTest, WithoutDealsEveryEpochHasAllExamples) {
  const DealPlan plan(10, 2, 3);
  EXPECT_THAT(Batch(plan, 0, 0), ElementsAre(0, 3));
  EXPECT_THAT(Batch(plan, 1, 0), ElementsAre(1, 4));
  EXPECT_THAT(Batch(plan, 0, 1), ElementsAre(6, 9));
  EXPECT_THAT(Batch(plan, 2, 1), ElementsAre(8));
  EXPECT_THAT(Batch(plan, 2, 3, 1), ElementsAre(8));
  EXPECT_EQ(plan.epoch(Step{1}), 0u);
  EXPECT_EQ(plan.epoch(Step{2}), 1u);
  EXPECT_EQ(plan.EpochBegin(7), Step{14});
  EXPECT_THAT(Batch(plan, 3, 0), IsEmpty());
}

// Without the bound, the plan would look at 2^40 steps.
TEST(DealPlanTest, ADealAfterTheEndOfTheRunLooksAtNoEarlierStep) {
  DealPlan plan(10, 2, 3, /*batch_count=*/1, /*epochs=*/4);
  plan.Add(DealOf(uint64_t{1} << 40, {0, 1}, {{2, 0}}));
  EXPECT_EQ(plan.EpochBegin(4), Step{8});
  EXPECT_THAT(Batch(plan, 2, 7, 3), ElementsAre(8));
}

TEST(DealPlanTest, AJoinDealsTheRestOfTheEpochAnew) {
  DealPlan plan(12, 2, 2);
  plan.Add(DealOf(1, {0, 1, 4}));
  EXPECT_THAT(Batch(plan, 4, 0), IsEmpty());
  EXPECT_THAT(Batch(plan, 1, 0), ElementsAre(1, 3));
  EXPECT_THAT(Batch(plan, 0, 1), ElementsAre(4, 7));
  EXPECT_THAT(Batch(plan, 4, 1), ElementsAre(6, 9));
  EXPECT_THAT(Batch(plan, 1, 2), ElementsAre(11));
  EXPECT_EQ(plan.EpochBegin(1), Step{3});
  EXPECT_THAT(Batch(plan, 4, 3, 1), ElementsAre(2, 5));
  EXPECT_EQ(plan.EpochBegin(2), Step{5});
}

TEST(DealPlanTest, AGrownBatchBeginsInTheMiddleOfAnEpoch) {
  DealPlan plan(12, 1, 2);
  Deal deal = DealOf(2, {0, 1});
  deal.set_accumulate(3);
  plan.Add(deal);
  EXPECT_THAT(Batch(plan, 1, 1), ElementsAre(3));
  EXPECT_THAT(Batch(plan, 0, 2), ElementsAre(4, 6, 8));
  EXPECT_THAT(Batch(plan, 1, 2), ElementsAre(5, 7, 9));
  EXPECT_THAT(Batch(plan, 1, 3), ElementsAre(11)) << "the last batch of the epoch is smaller";
  EXPECT_EQ(plan.EpochBegin(1), Step{4});
  EXPECT_THAT(Batch(plan, 0, 5, 1), ElementsAre(6, 8, 10));
  EXPECT_EQ(plan.EpochBegin(2), Step{6});
  // A deal that states no number has that of the job file.
  plan.Add(DealOf(5, {1}));
  EXPECT_THAT(Batch(plan, 1, 5, 1), ElementsAre(6));
}

TEST(DealPlanTest, ADealCountsTheBatchesOfTheJobFile) {
  DealPlan plan(24, 2, 1, /*batch_count=*/2);
  Deal deal = DealOf(1, {0});
  deal.set_accumulate(4);
  plan.Add(deal);
  EXPECT_THAT(Batch(plan, 0, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Batch(plan, 0, 1), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(DealPlanTest, MembersWithDifferentBatchesTakeTurns) {
  DealPlan plan(13, 1, 3);
  Deal deal = DealOf(1, {0, 1, 2});
  for (const uint32_t batches : {3, 1, 2}) deal.add_batches(batches);
  plan.Add(deal);
  EXPECT_THAT(Batch(plan, 2, 0), ElementsAre(2));
  EXPECT_THAT(Batch(plan, 0, 1), ElementsAre(3, 6, 8));
  EXPECT_THAT(Batch(plan, 1, 1), ElementsAre(4));
  EXPECT_THAT(Batch(plan, 2, 1), ElementsAre(5, 7));
  EXPECT_THAT(Batch(plan, 0, 2), ElementsAre(9, 12));
  EXPECT_THAT(Batch(plan, 2, 2), ElementsAre(11));
  EXPECT_EQ(plan.EpochBegin(1), Step{3});
  EXPECT_EQ(plan.EpochBegin(2), Step{6});
  EXPECT_THAT(Batch(plan, 0, 5, 1), ElementsAre(12));
  EXPECT_THAT(Batch(plan, 1, 5, 1), IsEmpty());
}

TEST(DealPlanTest, UnfinishedExamplesOfADepartedWorkerAreDealtAnew) {
  DealPlan plan(12, 2, 2);
  plan.Add(DealOf(2, {0}, {{1, 1}}));
  EXPECT_THAT(Batch(plan, 1, 0), ElementsAre(1, 3)) << "finished";
  EXPECT_THAT(Batch(plan, 1, 1), IsEmpty()) << "dealt anew";
  EXPECT_THAT(Batch(plan, 0, 2), ElementsAre(5, 7));
  EXPECT_THAT(Batch(plan, 0, 3), ElementsAre(8, 9));
  EXPECT_THAT(Batch(plan, 0, 4), ElementsAre(10, 11));
  EXPECT_EQ(plan.EpochBegin(1), Step{5});
}

TEST(DealPlanTest, UnfinishedExamplesOfAnEarlierEpochComeFirst) {
  DealPlan plan(8, 2, 2);
  plan.Add(DealOf(2, {0}, {{1, 1}}));
  EXPECT_EQ(plan.epoch(Step{2}), 1u);
  const std::vector<DealtExample> batch = plan.Batch(WorkerId{0}, Step{2});
  EXPECT_THAT(batch, ElementsAre(DealtExample{0, 5}, DealtExample{0, 7}));
  EXPECT_THAT(Batch(plan, 0, 3, 1), ElementsAre(0, 1));
  EXPECT_EQ(plan.EpochBegin(1), Step{2});
  EXPECT_EQ(plan.EpochBegin(2), Step{7});
}

TEST(DealPlanTest, AReturningWorkerDoesNotRepeatReturnedExamples) {
  DealPlan plan(20, 1, 2);
  plan.Add(DealOf(4, {0}, {{1, 2}}));
  plan.Add(DealOf(4, {0, 1}));
  plan.Add(DealOf(6, {0}, {{1, 3}}));
  EXPECT_THAT(Batch(plan, 1, 3), IsEmpty());
  EXPECT_THAT(Batch(plan, 1, 4), IsEmpty());
  // Positions 5 and 7 came back at step 4, the batches of worker 1 in steps 4 and 5 at step 6.
  EXPECT_THAT(Batch(plan, 0, 4), ElementsAre(5));
  EXPECT_THAT(Batch(plan, 0, 5), ElementsAre(8));
  EXPECT_THAT(Batch(plan, 0, 6), ElementsAre(7));
  EXPECT_THAT(Batch(plan, 0, 7), ElementsAre(9));
  EXPECT_THAT(Batch(plan, 0, 8), ElementsAre(10));
}

// Simulates random jobs: workers advance, join, leave and are killed, the batch changes, and the
// lead announces deals at steps that no worker has begun. At the end, every example of every epoch
// that has ended must be finished exactly once.
TEST(DealPlanTest, EveryExampleOfEveryEpochIsFinishedExactlyOnce) {
  int checked_count = 0, departed_count = 0, growth_count = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&random](uint64_t n) { return random() % n; };
    const uint64_t example_count = 1 + below(60);
    const uint32_t batch_size = 1 + below(4);
    const uint32_t workers = 1 + below(4);
    DealPlan plan(example_count, batch_size, workers);
    std::map<uint32_t, uint64_t> next;  // for each worker that ever ran
    std::set<uint32_t> live, members;
    for (uint32_t w = 0; w < workers; ++w) {
      next[w] = 0;
      live.insert(w);
    }
    members = live;
    std::map<DealtExample, int> finished_count;
    uint64_t dealt_until = 1 + below(6);
    uint32_t accumulate = 0;
    bool by_member = false;
    const auto add = [&](const std::set<uint32_t>& to,
                         const std::map<uint32_t, uint64_t>& departed) {
      Deal deal = DealOf(dealt_until, {to.begin(), to.end()}, departed);
      deal.set_accumulate(accumulate);
      for (size_t i = 0; by_member && i < to.size(); ++i) deal.add_batches(1 + below(5));
      plan.Add(deal);
    };
    const auto largest_next = [&] {
      uint64_t largest = 0;
      for (const auto& [worker, step] : next) largest = std::max(largest, step);
      return largest;
    };
    const auto run = [&](uint32_t worker) {
      for (const DealtExample& example : plan.Batch(WorkerId{worker}, Step{next[worker]})) {
        ++finished_count[example];
      }
      ++next[worker];
    };
    for (int event = 0; event < 150; ++event) {
      const uint64_t kind = below(20);
      if (kind == 0 && live.size() > 1) {  // a worker leaves or is killed
        live.erase(*std::next(live.begin(), static_cast<ptrdiff_t>(below(live.size()))));
      } else if (kind == 1) {  // a worker joins or returns
        const auto worker = static_cast<uint32_t>(below(6));
        // The departure of its former process is announced first.
        if (members.contains(worker) || !live.insert(worker).second) continue;
        next[worker] = std::max(next[worker], largest_next());
      } else if (kind == 2 && live != members) {
        std::map<uint32_t, uint64_t> departed;
        for (const uint32_t worker : members) {
          if (!live.contains(worker)) departed[worker] = next[worker];
        }
        departed_count += static_cast<int>(departed.size());
        add(live, departed);
        members = live;
      } else if (kind == 4 && below(4) == 0) {
        accumulate = 1 + below(5);
        by_member = below(2) == 0;
        add(members, {});
        ++growth_count;
      } else if (kind == 3) {
        dealt_until = std::max(dealt_until, largest_next() + 1 + below(5));
      } else {
        const uint32_t worker =
            *std::next(live.begin(), static_cast<ptrdiff_t>(below(live.size())));
        if (next[worker] < dealt_until) run(worker);
      }
    }
    // The departed workers' examples are dealt anew, then all live workers run for two more epochs.
    std::map<uint32_t, uint64_t> departed;
    for (const uint32_t worker : members) {
      if (!live.contains(worker)) departed[worker] = next[worker];
    }
    add(live, departed);
    const uint64_t last_epoch = plan.epoch(Step{dealt_until});
    const Step end = plan.EpochBegin(last_epoch + 2);
    for (const uint32_t worker : live) {
      while (next[worker] < end.value) run(worker);
    }
    ASSERT_EQ(finished_count.size(), (last_epoch + 2) * example_count);
    for (const auto& [example, count] : finished_count) {
      ASSERT_EQ(count, 1) << "epoch " << example.epoch << ", position " << example.position;
      ++checked_count;
    }
  }
  EXPECT_GT(checked_count, 20'000);
  EXPECT_GT(departed_count, 400);
}

TEST(DealPlanTest, EpochBeginsAgreeWithTheEpochsOfSteps) {
  int checked_count = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    DealPlan plan(1 + random() % 40, 1 + random() % 3, 1 + random() % 3);
    uint64_t step = 0;
    for (int deal = 0; deal < 5; ++deal) {
      step += random() % 12;
      plan.Add(DealOf(step, {static_cast<uint32_t>(random() % 3), 3}));
    }
    for (uint64_t epoch = 1; plan.EpochBegin(epoch).value < step + 50; ++epoch) {
      const Step begin = plan.EpochBegin(epoch);
      ASSERT_EQ(plan.epoch(begin), epoch) << "seed " << seed;
      ASSERT_EQ(plan.epoch(Step{begin.value - 1}), epoch - 1) << "seed " << seed;
      ++checked_count;
    }
  }
  EXPECT_GT(checked_count, 300);
}

}  // namespace
}  // namespace thinwire
