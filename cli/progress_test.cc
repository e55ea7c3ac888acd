#include "cli/progress.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

const absl::Time kStart = absl::UnixEpoch();

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
  EXPECT_EQ(Progress(false).Line(record, std::nullopt, kStart),
            "starting: 1 of 4 workers have joined");
}

TEST(ProgressTest, TheLineHasStepLossAccuracyRateBytesAndStaleness) {
  RunRecord record(2);
  Progress progress(false);
  progress.Line(record, std::nullopt, kStart);
  record.Apply(Step(0, 41, 1000));
  record.Apply(Step(1, 39, 600));
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_test_accuracy(0.8741);
  record.Apply(epoch);
  EXPECT_EQ(
      progress.Line(record, 1.25, kStart + absl::Seconds(2)),
      "step 39-41  epoch 0  loss 0.500  accuracy 0.8741  800 examples/s  pushed 20.0 MB (4.0x "
      "smaller than fp32)  "
      "staleness 1.2");
}

TEST(ProgressTest, ByRoundTheLargestReportedStepIsShown) {
  RunRecord record(2);
  record.Apply(Step(0, 41, 1000));
  record.Apply(Step(1, 39, 600));
  const std::string line = Progress(true).Line(record, std::nullopt, kStart);
  EXPECT_TRUE(line.starts_with("step 41  epoch 0")) << line;
}

TEST(ProgressTest, TheRateCoversTheLastTenSeconds) {
  RunRecord record(1);
  Progress progress(false);
  for (int second = 0; second <= 30; ++second) {
    record.Apply(Step(0, 1, second < 20 ? 0 : 100 * (second - 20)));
    progress.Line(record, std::nullopt, kStart + absl::Seconds(second));
  }
  record.Apply(Step(0, 1, 1100));
  EXPECT_NE(
      progress.Line(record, std::nullopt, kStart + absl::Seconds(31)).find("  100 examples/s"),
      std::string::npos);
}

TEST(ProgressTest, LostAndWaitingWorkersAreShown) {
  RunRecord record(2);
  record.Apply(Step(0, 7, 10));
  record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 0, .signal = 9}, false);
  WorkerEvent waiting;
  waiting.mutable_waiting()->set_text("step 8: waits for worker 1");
  record.Apply(waiting);
  const std::string line = Progress(false).Line(record, std::nullopt, kStart);
  EXPECT_NE(line.find("1 worker lost  worker 0: step 8: waits for worker 1"), std::string::npos)
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
