#include "cli/train/progress.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

const absl::Time kStart = absl::UnixEpoch();
constexpr size_t kWide = 1000;

void Join(RunRecord& record, uint64_t planned_steps) {
  WorkerEvent event;
  event.mutable_joined()->set_planned_steps(planned_steps);
  record.Apply(event);
}

WorkerEvent Step(uint32_t worker, uint64_t step, uint64_t examples) {
  WorkerEvent event;
  event.set_worker(worker);
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_examples(examples);
  event.mutable_step()->set_loss(0.5);
  event.mutable_step()->mutable_counters()->set_push_bytes_raw(40'000'000);
  event.mutable_step()->mutable_counters()->set_push_bytes_encoded(10'000'000);
  return event;
}

TEST(ProgressTest, BeforeTheFirstStepTheLineCountsTheJoinedWorkers) {
  RunRecord record(4);
  WorkerEvent joined;
  joined.set_worker(2);
  joined.mutable_joined();
  record.Apply(joined);
  EXPECT_EQ(Progress(false).Line(record, std::nullopt, kStart, kWide),
            "starting: 1 of 4 workers have joined");
}

// A record of two workers that are at steps 39 and 41 of 100, and one evaluated epoch.
RunRecord Training() {
  RunRecord record(2);
  Join(record, 100);
  record.Apply(Step(0, 41, 1000));
  record.Apply(Step(1, 39, 600));
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_test_accuracy(0.8741);
  record.Apply(epoch);
  return record;
}

TEST(ProgressTest, TheLineHasStepLossAccuracyRateBytesAndStaleness) {
  Progress progress(false);
  progress.Line(RunRecord(2), std::nullopt, kStart, kWide);
  EXPECT_EQ(progress.Line(Training(), 1.25, kStart + absl::Seconds(2), kWide),
            "step 39-41/100  train loss 0.500  accuracy 0.874  800 examples/s  "
            "pushed 20.0 MB (4.0x smaller than fp32)  staleness 1.2");
}

TEST(ProgressTest, ARunWithoutAccuracyShowsItsTestLoss) {
  RunRecord record(2);
  Join(record, 100);
  record.Apply(Step(0, 41, 1000));
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_test_loss(0.25);
  record.Apply(epoch);
  const std::string line = Progress(false).Line(record, std::nullopt, kStart, kWide);
  EXPECT_NE(line.find("  test loss 0.250  "), std::string::npos) << line;
  EXPECT_EQ(line.find("accuracy"), std::string::npos) << line;
}

TEST(ProgressTest, ANarrowLineOmitsTheLastFigures) {
  for (size_t columns : {20, 40, 60, 79}) {
    const std::string line = Progress(false).Line(Training(), 1.25, kStart, columns);
    EXPECT_TRUE(line.starts_with("step 39-41/100")) << line;
    EXPECT_LE(line.size(), columns);
    EXPECT_EQ(line.find("accuracy 0.874") != std::string::npos, columns >= 60) << line;
  }
}

TEST(ProgressTest, TheTimeLeftFollowsFromTheAverageSpeedOfTheRun) {
  RunRecord record(1);
  Join(record, 1000);
  Progress progress(true);
  record.Apply(Step(0, 10, 10));
  EXPECT_EQ(progress.Line(record, std::nullopt, kStart, kWide).find(" left"), std::string::npos);
  record.Apply(Step(0, 20, 20));
  EXPECT_TRUE(progress.Line(record, std::nullopt, kStart + absl::Seconds(2), kWide)
                  .starts_with("step 20/1000  3m16s left  "));
  record.Apply(Step(0, 110, 110));
  EXPECT_TRUE(progress.Line(record, std::nullopt, kStart + absl::Minutes(20), kWide)
                  .starts_with("step 110/1000  2h58m left  "));
}

TEST(ProgressTest, ByRoundTheLargestReportedStepIsShown) {
  RunRecord record(2);
  record.Apply(Step(0, 41, 1000));
  record.Apply(Step(1, 39, 600));
  const std::string line = Progress(true).Line(record, std::nullopt, kStart, kWide);
  EXPECT_TRUE(line.starts_with("step 41  ")) << line;
}

TEST(ProgressTest, ADivergedRunIsNamedWithTheSymptom) {
  RunRecord record(1);
  record.Apply(Step(0, 41, 1000));
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_diverged("the training loss grew");
  record.Apply(epoch);
  const std::string line = Progress(true).Line(record, std::nullopt, kStart, kWide);
  EXPECT_NE(line.find("  diverged: worker 0: the training loss grew"), std::string::npos) << line;
}

TEST(ProgressTest, TheRateCoversTheLastTenSeconds) {
  RunRecord record(1);
  Progress progress(false);
  for (int second = 0; second <= 30; ++second) {
    record.Apply(Step(0, 1, second < 20 ? 0 : 100 * (second - 20)));
    progress.Line(record, std::nullopt, kStart + absl::Seconds(second), kWide);
  }
  record.Apply(Step(0, 1, 1100));
  const std::string line = progress.Line(record, std::nullopt, kStart + absl::Seconds(31), kWide);
  EXPECT_NE(line.find("  100 examples/s"), std::string::npos) << line;
}

TEST(ProgressTest, LostAndWaitingWorkersAreShown) {
  RunRecord record(2);
  record.Apply(Step(0, 7, 10));
  record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 0, .signal = 9}, false);
  WorkerEvent waiting;
  waiting.mutable_waiting()->set_text("step 8: waits for worker 1");
  record.Apply(waiting);
  const std::string line = Progress(false).Line(record, std::nullopt, kStart, kWide);
  EXPECT_NE(line.find("step 7  1 worker lost  worker 0: step 8: waits for worker 1  "),
            std::string::npos)
      << line;
}

TEST(ProgressTest, BytesHaveAUnit) {
  EXPECT_EQ(BytesText(1500), "1.5 kB");
  EXPECT_EQ(BytesText(81'234'567), "81.2 MB");
  EXPECT_EQ(BytesText(2'500'000'000), "2.50 GB");
}

TEST(ProgressTest, ASavingIsShownOnlyIfThereIsOne) {
  EXPECT_EQ(SavingText(4000, 1000), "4.0x smaller than fp32");
  EXPECT_EQ(SavingText(0, 0), "");
  EXPECT_EQ(SavingText(1000, 1001), "");
}

}  // namespace
}  // namespace thinwire
