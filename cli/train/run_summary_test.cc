#include "cli/train/run_summary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "common/spec/schedule_spec.h"
#include "common/time/clock.h"
#include "proto/tensorboard_event.pb.h"

namespace thinwire {
namespace {

WorkerEvent StepOf(uint32_t worker, uint64_t step, double loss) {
  WorkerEvent event;
  event.set_worker(worker);
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(loss);
  event.mutable_step()->set_examples(10 * step);
  event.mutable_step()->set_seconds(static_cast<double>(step) / 2);
  event.mutable_step()->mutable_counters()->set_push_bytes_encoded(100 * step);
  return event;
}

class RunSummaryTest : public testing::Test {
 protected:
  // Returns the values of a step by tag. The value of a histogram is its number of samples.
  std::map<std::string, double> ValuesAt(int64_t step) const {
    std::map<std::string, double> values;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      for (size_t at = 0; at + 16 <= bytes.size();) {
        uint64_t length = 0;
        std::memcpy(&length, bytes.data() + at, sizeof(length));
        TensorBoardEvent event;
        EXPECT_TRUE(event.ParseFromString(bytes.substr(at + 12, length)));
        at += length + 16;
        if (event.step() != step) continue;
        for (const auto& value : event.summary().value()) {
          values[value.tag()] = value.has_histo() ? value.histo().num() : value.simple_value();
        }
      }
    }
    return values;
  }

  const std::string folder_ = [] {
    const std::string name = testing::TempDir() + "/run_summary";
    std::filesystem::remove_all(name);
    return name;
  }();
  ManualClock clock_;
  const Schedule schedule_ =
      Schedule::Make({.kind = ScheduleKind::kPolynomial, .learning_rate = 0.5}).value();
};

TEST_F(RunSummaryTest, FiguresAreSumsAndMeansOverTheWorkers) {
  const auto summary = RunSummary::Create(folder_, schedule_, clock_).value();
  RunRecord record(2);
  summary->Update(record, {});  // no step yet
  WorkerEvent joined;
  joined.mutable_joined()->set_planned_steps(40);
  record.Apply(joined);
  record.Apply(StepOf(0, 10, 2.0));
  record.Apply(StepOf(1, 10, 1.0));
  summary->Update(record, {{0, 20}});
  record.Apply(StepOf(0, 20, 1.0));
  record.Apply(StepOf(1, 20, 0.5));
  summary->Update(record, {{0, 30}, {1, 10}});
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_test_accuracy(0.75);
  epoch.mutable_epoch()->set_test_loss(0.625);
  summary->AddTest(record, epoch.epoch());
  ASSERT_TRUE(summary->Flush().ok());

  EXPECT_EQ(ValuesAt(10), (std::map<std::string, double>{{"bytes/pull_encoded", 0},
                                                         {"bytes/pull_raw", 0},
                                                         {"bytes/push_encoded", 2000},
                                                         {"bytes/push_raw", 0},
                                                         {"servers/staleness", 20},
                                                         {"train/learning_rate", 0.375},
                                                         {"train/loss", 1.5}}));
  EXPECT_EQ(ValuesAt(20), (std::map<std::string, double>{{"bytes/pull_encoded", 0},
                                                         {"bytes/pull_raw", 0},
                                                         {"bytes/push_encoded", 4000},
                                                         {"bytes/push_raw", 0},
                                                         {"servers/staleness", 40},
                                                         {"test/accuracy", 0.75},
                                                         {"test/loss", 0.625},
                                                         {"train/examples_per_second", 40},
                                                         {"train/learning_rate", 0.25},
                                                         {"train/loss", 0.75},
                                                         {"train/step_seconds", 0.5}}));
}

TEST_F(RunSummaryTest, UnchangedFiguresAreWrittenOnce) {
  const auto summary = RunSummary::Create(folder_, schedule_, clock_).value();
  RunRecord record(1);
  record.Apply(StepOf(0, 10, 2.0));
  const auto size = [&] {
    EXPECT_TRUE(summary->Flush().ok());
    return std::filesystem::file_size(std::filesystem::directory_iterator(folder_)->path());
  };
  summary->Update(record, {});
  const auto once = size();
  summary->Update(record, {});
  EXPECT_EQ(size(), once);
  record.Apply(StepOf(0, 10, 1.0));  // as at the end of a run, when the last loss is known
  summary->Update(record, {});
  EXPECT_GT(size(), once);
  EXPECT_EQ(ValuesAt(10)["train/loss"], 1.0);
}

}  // namespace
}  // namespace thinwire
