#include "worker/process/worker_summary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/time/clock.h"

namespace thinwire {
namespace {

std::string ReadFiles(const std::string& folder) {
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(in), {});
  }
  return bytes;
}

WorkerEvent StepOf(uint64_t step, double loss) {
  WorkerEvent event;
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(loss);
  event.mutable_step()->set_examples(10 * step);
  event.mutable_step()->set_seconds(static_cast<double>(step));
  return event;
}

TEST(WorkerSummaryTest, StepsAndTestsAreWrittenAtOnce) {
  const std::string folder = testing::TempDir() + "/worker_summary";
  std::filesystem::remove_all(folder);
  ManualClock clock;
  const auto summary = WorkerSummary::Create(folder, clock).value();
  const size_t empty = ReadFiles(folder).size();
  summary->Add(StepOf(1, 2.0));
  const std::string first = ReadFiles(folder);
  EXPECT_GT(first.size(), empty);
  EXPECT_NE(first.find("train/loss"), std::string::npos);
  EXPECT_EQ(first.find("train/examples_per_second"), std::string::npos)
      << "known from the second step on";
  summary->Add(StepOf(2, 1.0));
  EXPECT_NE(ReadFiles(folder).find("train/examples_per_second"), std::string::npos);
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_epoch(0);
  const size_t before = ReadFiles(folder).size();
  summary->Add(epoch);
  EXPECT_EQ(ReadFiles(folder).size(), before) << "an epoch without a test has no figures";
  epoch.mutable_epoch()->set_test_loss(0.5);
  summary->Add(epoch);
  EXPECT_NE(ReadFiles(folder).find("test/loss"), std::string::npos);
  EXPECT_EQ(ReadFiles(folder).find("test/accuracy"), std::string::npos) << "there is none";
  epoch.mutable_epoch()->set_test_accuracy(0.75);
  summary->Add(epoch);
  EXPECT_NE(ReadFiles(folder).find("test/accuracy"), std::string::npos);
}

}  // namespace
}  // namespace thinwire
