#include "worker/batches/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Sampler Make(uint64_t examples, uint32_t worker, uint32_t workers, uint32_t batch,
             uint64_t seed = 1) {
  return Sampler({.example_count = examples,
                  .worker = WorkerId{worker},
                  .workers = workers,
                  .batch_size = batch,
                  .seed = seed});
}

std::vector<uint32_t> EpochOf(Sampler& sampler, uint64_t epoch) {
  std::vector<uint32_t> examples;
  for (uint64_t i = 0; i < sampler.EpochBegin(1).value; ++i) {
    const auto batch = sampler.Batch(Step{epoch * sampler.EpochBegin(1).value + i});
    examples.insert(examples.end(), batch.begin(), batch.end());
  }
  return examples;
}

TEST(SamplerTest, TheWorkersTogetherTakeEveryExampleOncePerEpoch) {
  for (uint64_t examples : {1, 2, 9, 10, 11, 100}) {
    for (uint32_t workers : {1, 2, 3, 7}) {
      for (uint32_t batch : {1, 4, 200}) {
        for (uint64_t epoch : {0, 1, 5}) {
          std::vector<uint32_t> all;
          size_t least = examples;
          size_t most = 0;
          for (uint32_t w = 0; w < workers; ++w) {
            Sampler sampler = Make(examples, w, workers, batch);
            const std::vector<uint32_t> share = EpochOf(sampler, epoch);
            least = std::min(least, share.size());
            most = std::max(most, share.size());
            all.insert(all.end(), share.begin(), share.end());
          }
          std::sort(all.begin(), all.end());
          ASSERT_THAT(all, SizeIs(examples));
          for (uint32_t i = 0; i < examples; ++i) ASSERT_EQ(all[i], i);
          EXPECT_LE(most - least, 1u);
        }
      }
    }
  }
}

TEST(SamplerTest, TheWorkersOfSitesHaveTheBatchesOfAJobWithoutSites) {
  int batch_count = 0;
  for (uint64_t examples : {3, 10, 11, 100}) {
    for (const auto& [sites, workers] : {std::pair(2u, 2u), std::pair(3u, 1u), std::pair(2u, 5u)}) {
      for (uint32_t site = 0; site < sites; ++site) {
        for (uint32_t w = 0; w < workers; ++w) {
          Sampler flat = Make(examples, w * sites + site, workers * sites, 4);
          Sampler of_site({.example_count = examples,
                           .worker = WorkerId{w},
                           .workers = workers,
                           .batch_size = 4,
                           .share = {.site = site, .sites = sites}});
          ASSERT_EQ(of_site.EpochBegin(3), flat.EpochBegin(3));
          for (Step step; step < flat.EpochBegin(3); ++step) {
            const auto batch = flat.Batch(step);
            EXPECT_THAT(of_site.Batch(step), ElementsAreArray(batch));
            EXPECT_EQ(of_site.RandomSeed(step), flat.RandomSeed(step));
            batch_count += batch.empty() ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(batch_count, 100);
}

TEST(SamplerTest, EveryWorkerHasTheSameNumberOfSteps) {
  EXPECT_EQ(Make(10, 0, 3, 2).EpochBegin(1), Step{2});
  EXPECT_EQ(Make(10, 2, 3, 2).EpochBegin(1), Step{2});
  EXPECT_EQ(Make(60'000, 0, 4, 32).EpochBegin(1), Step{469});
}

TEST(SamplerTest, AShareThatEndsEarlyLeavesAnEmptyBatch) {
  // With 3 examples and 2 workers, one share has 2 examples and the other has 1.
  Sampler first = Make(3, 0, 2, 1);
  Sampler second = Make(3, 1, 2, 1);
  EXPECT_THAT(first.Batch(Step{1}), SizeIs(1));
  EXPECT_THAT(second.Batch(Step{1}), IsEmpty());
  EXPECT_THAT(second.Batch(Step{2}), SizeIs(1));
}

TEST(SamplerTest, AWorkerWithoutExamplesHasOnlyEmptyBatches) {
  Sampler sampler = Make(2, 2, 3, 8);
  EXPECT_THAT(EpochOf(sampler, 0), IsEmpty());
}

TEST(SamplerTest, ABatchIsAPartOfTheEpochsPermutation) {
  Sampler one = Make(10, 0, 1, 10);
  const auto all = one.Batch(Step{1});
  const std::vector<uint32_t> permutation(all.begin(), all.end());
  Sampler sampler = Make(10, 1, 3, 2);
  EXPECT_THAT(sampler.Batch(Step{2}), ElementsAreArray({permutation[1], permutation[4]}));
  EXPECT_THAT(sampler.Batch(Step{3}), ElementsAreArray({permutation[7]}));
}

TEST(SamplerTest, ANewWorkerBecomesAMemberWithADeal) {
  Sampler sampler = Make(12, 2, 2, 2);
  EXPECT_THAT(sampler.Batch(Step{0}), IsEmpty());
  EXPECT_THAT(sampler.MembersBatch(Step{0}), ElementsAreArray(Make(12, 0, 2, 2).Batch(Step{0})));
  Deal deal;
  deal.set_step(1);
  for (uint32_t w = 0; w < 3; ++w) deal.add_members(w);
  sampler.Add(deal);
  EXPECT_EQ(sampler.deal_count(), 1u);
  EXPECT_THAT(sampler.Batch(Step{0}), IsEmpty());
  EXPECT_THAT(sampler.Batch(Step{1}), SizeIs(2));
  EXPECT_EQ(sampler.EpochBegin(1), Step{3});
}

TEST(SamplerTest, EpochsAndSeedsHaveDifferentOrders) {
  Sampler sampler = Make(50, 0, 1, 10);
  Sampler other = Make(50, 0, 1, 10, /*seed=*/2);
  EXPECT_NE(EpochOf(sampler, 0), EpochOf(sampler, 1));
  EXPECT_NE(EpochOf(sampler, 0), EpochOf(other, 0));
}

TEST(SamplerTest, BatchesDoNotDependOnTheOrderOfCalls) {
  Sampler straight = Make(50, 1, 2, 4);
  std::vector<std::vector<uint32_t>> batches;
  for (uint64_t t = 0; t < 3 * straight.EpochBegin(1).value; ++t) {
    const auto batch = straight.Batch(Step{t});
    batches.emplace_back(batch.begin(), batch.end());
  }
  Sampler jumping = Make(50, 1, 2, 4);
  for (uint64_t t : {20u, 3u, 12u, 3u, 0u}) {
    EXPECT_THAT(jumping.Batch(Step{t}), ElementsAreArray(batches[t])) << t;
  }
}

TEST(SamplerTest, TheOrderIsTheSameOnEveryMachine) {
  Sampler sampler = Make(8, 0, 1, 8, /*seed=*/7);
  EXPECT_THAT(sampler.Batch(Step{0}), ElementsAreArray({2, 0, 5, 4, 1, 7, 6, 3}));
}

TEST(SamplerTest, PartsKeepTheOrderAndTheLastOneIsSmaller) {
  const std::vector<uint32_t> examples = {5, 3, 9, 1, 7};
  const auto parts = Parts(examples, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0], ElementsAreArray({5, 3}));
  EXPECT_THAT(parts[1], ElementsAreArray({9, 1}));
  EXPECT_THAT(parts[2], ElementsAreArray({7}));
  ASSERT_EQ(Parts(examples, 0).size(), 1u);
  EXPECT_THAT(Parts(examples, 0)[0], ElementsAreArray(examples));
  EXPECT_TRUE(Parts({}, 2).empty());
}

TEST(SamplerTest, TheRandomSeedDependsOnSeedWorkerAndStepOnly) {
  const Sampler sampler = Make(100, 1, 4, 2, 7);
  const uint64_t seed = sampler.RandomSeed(Step{3});
  EXPECT_EQ(sampler.RandomSeed(Step{3}, 0), seed);
  EXPECT_NE(sampler.RandomSeed(Step{3}, 1), seed);
  EXPECT_EQ(Make(50, 1, 2, 9, 7).RandomSeed(Step{3}), seed);
  EXPECT_NE(sampler.RandomSeed(Step{4}), seed);
  EXPECT_NE(Make(100, 2, 4, 2, 7).RandomSeed(Step{3}), seed);
  EXPECT_NE(Make(100, 1, 4, 2, 8).RandomSeed(Step{3}), seed);
}

}  // namespace
}  // namespace thinwire
