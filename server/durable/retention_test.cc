#include "server/durable/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A healthy checkpoint of two shards at STEP and LARGEST.
ListedCheckpoint Listed(const std::string& name, uint64_t step, uint64_t largest,
                        std::optional<TestResult> test = std::nullopt, uint64_t generation = 1) {
  CheckpointManifest manifest;
  manifest.set_generation(generation);
  manifest.set_healthy(true);
  if (step == largest) manifest.set_step(step);
  manifest.add_shards()->set_frontier(step);
  manifest.add_shards()->set_frontier(largest);
  if (test.has_value()) *manifest.mutable_test() = MessageOf(*test);
  return {.name = name, .manifest = manifest};
}

// A checkpoint of STEP with the accuracy ACCURACY of an earlier step.
ListedCheckpoint Tested(const std::string& name, uint64_t step, double accuracy,
                        uint64_t generation = 1) {
  return Listed(name, step, step, TestResult{.step = Step{step - 1}, .value = accuracy},
                generation);
}

std::vector<std::string> Names(const std::vector<TestedCheckpoint>& tested) {
  std::vector<std::string> names;
  for (const TestedCheckpoint& checkpoint : tested) names.push_back(checkpoint.name);
  return names;
}

TEST(TestResultTest, AHigherAccuracyAndASmallerLossAreBetter) {
  const TestResult accuracy = {.step = Step{3}, .value = 0.5};
  const TestResult loss = {.step = Step{3}, .value = 0.5, .is_loss = true};
  EXPECT_TRUE((TestResult{.value = 0.6}).IsBetterThan(accuracy));
  EXPECT_FALSE(accuracy.IsBetterThan(accuracy));
  EXPECT_TRUE((TestResult{.value = 0.4, .is_loss = true}).IsBetterThan(loss));
  EXPECT_FALSE(loss.IsBetterThan(loss));
  EXPECT_TRUE(accuracy.IsBetterThan(loss));
  EXPECT_FALSE(loss.IsBetterThan(accuracy));
}

TEST(TestResultTest, AMessageKeepsTheResult) {
  for (const bool is_loss : {false, true}) {
    const TestResult result = {.step = Step{3}, .value = 0.5, .is_loss = is_loss};
    EXPECT_EQ(TestResultOf(MessageOf(result)), result);
    EXPECT_EQ(result.Text(), is_loss ? "loss 0.5000" : "0.5000");
  }
}

TEST(TestResultTest, AMessageWithoutAFiniteNumberHasNoResult) {
  EXPECT_EQ(TestResultOf(ModelTest()), std::nullopt);
  ModelTest test;
  test.set_accuracy(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(TestResultOf(test), std::nullopt);
  test.set_loss(std::numeric_limits<double>::infinity());
  EXPECT_EQ(TestResultOf(test), std::nullopt);
}

TEST(RetentionTest, TheFirstStepAtOrAfterEachMultipleIsOneOfTheFirstSteps) {
  const std::vector<Step> steps = {{0}, {3}, {10}, {14}, {19}, {35}, {39}, {40}};
  EXPECT_EQ(FirstSteps(steps, 10), (std::vector<Step>{{10}, {35}, {40}}));
  EXPECT_EQ(FirstSteps(steps, 100), std::vector<Step>());
  EXPECT_EQ(FirstSteps(steps, 0), std::vector<Step>());
}

TEST(RetentionTest, TheBestTestedCheckpointsAreKeptBesideTheNewest) {
  const std::vector<ListedCheckpoint> all = {Tested("a", 10, 0.5), Tested("b", 20, 0.9),
                                             Tested("c", 30, 0.7), Listed("d", 40, 40),
                                             Tested("e", 50, 0.1), Listed("f", 60, 60)};
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1}}), ElementsAre("f"));
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1, .best_count = 1}}),
              ElementsAre("b", "f"));
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 2, .best_count = 2}}),
              ElementsAre("b", "c", "e", "f"));
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1, .best_count = 9}}),
              ElementsAre("a", "b", "c", "e", "f"));
}

TEST(RetentionTest, OfEqualTestsTheEarlierIsBetter) {
  EXPECT_THAT(Names(TestedCheckpoints({Tested("a", 10, 0.5), Tested("b", 20, 0.5)})),
              ElementsAre("a", "b"));
}

TEST(RetentionTest, ShardsOfATestedCheckpointMayHaveDifferentSteps) {
  const TestResult test = {.step = Step{9}, .value = 0.5};
  const std::vector<ListedCheckpoint> all = {Listed("a", 10, 13, test), Listed("b", 10, 14),
                                             Listed("c", 11, 14)};
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1, .best_count = 1}}),
              ElementsAre("a", "c"));
  EXPECT_THAT(BestSteps(TestedCheckpoints(all), {Step{10}, Step{11}}, 1), IsEmpty());
}

TEST(RetentionTest, ATestedCheckpointSurvivesALaterOneOfItsStep) {
  const std::vector<ListedCheckpoint> all = {Tested("a", 10, 0.5), Listed("b", 10, 10)};
  EXPECT_EQ(AlignedCheckpoints(all).back().name, "b");
  EXPECT_THAT(Names(TestedCheckpoints(all)), ElementsAre("a"));
}

TEST(RetentionTest, ACopyUnderANewGenerationTakesThePlaceOfATestedCheckpoint) {
  EXPECT_THAT(Names(TestedCheckpoints({Tested("a", 10, 0.5), Tested("b", 10, 0.5, 2)})),
              ElementsAre("b"));
}

TEST(RetentionTest, ATestedCheckpointOfStepsThatAreRepeatedDoesNotCount) {
  const std::vector<ListedCheckpoint> all = {Tested("a", 10, 0.5), Tested("b", 20, 0.9),
                                             Listed("c", 15, 15, std::nullopt, 2),
                                             Listed("d", 30, 30, std::nullopt, 2)};
  EXPECT_THAT(Names(TestedCheckpoints(all)), ElementsAre("a"));
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1, .best_count = 1}}),
              ElementsAre("a", "d"));
}

TEST(RetentionTest, BestStepsAreAmongTheGivenSteps) {
  const std::vector<TestedCheckpoint> tested =
      TestedCheckpoints({Tested("a", 10, 0.5), Tested("b", 20, 0.9), Tested("c", 30, 0.7)});
  EXPECT_THAT(BestSteps(tested, {Step{10}, Step{20}, Step{30}}, 2),
              ElementsAre(Step{20}, Step{30}));
  // Not all servers have a checkpoint of step 20.
  EXPECT_THAT(BestSteps(tested, {Step{10}, Step{30}}, 1), ElementsAre(Step{30}));
  EXPECT_THAT(BestSteps(tested, {Step{10}, Step{30}}, 0), IsEmpty());
}

TEST(RetentionTest, ADamagedCheckpointIsKeptOnlyAmongTheNewest) {
  const std::vector<ListedCheckpoint> all = {Listed("a", 10, 10), {.name = "b", .manifest = {}}};
  EXPECT_THAT(NamesToKeep(all, {.retention = {.newest_count = 1}}), ElementsAre("a", "b"));
  std::vector<ListedCheckpoint> more = all;
  more.push_back(Listed("c", 20, 20));
  EXPECT_THAT(NamesToKeep(more, {.retention = {.newest_count = 1}}), ElementsAre("c"));
}

}  // namespace
}  // namespace thinwire
