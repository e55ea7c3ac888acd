#include "experiments/plan/real_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"

namespace thinwire::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kReport[] = R"({
  "steps": 40, "seconds": 8.5, "median_step_seconds": 0.2, "sent_bytes": 900, "received_bytes": 700,
  "late_pushes": 3, "final_parameters_crc32c": 3735928559,
  "staleness": {"mean": 1.0, "max": 3, "histogram": {"0": 20, "3": 10}},
  "epoch_rows": [
    {"epoch": 0, "seconds": 4.5, "train_loss": 0.5, "test_accuracy": 0.75, "test_loss": 0.625,
     "sent_bytes": 450, "received_bytes": 350},
    {"epoch": 1, "seconds": 8.5, "train_loss": 0.25, "test_accuracy": null, "test_loss": null,
     "sent_bytes": 900, "received_bytes": 700}],
  "precision_decisions": [
    {"step": 8, "next_step": 30, "accuracy": 0.5, "chosen": "fp32", "candidates": [
      {"name": "fp32", "predicted_accuracy": 0.75, "deviation": 0.125, "seconds_per_step": 0.25,
       "gain_per_second": 0.0625, "gain_deviation": 0.03125, "encoding_error": 0.5},
      {"name": "table_1", "predicted_accuracy": null, "deviation": null, "seconds_per_step": 0.125,
       "gain_per_second": null, "gain_deviation": null, "encoding_error": null}],
     "layers": "matrices"}],
  "worker_rows": [
    {"worker": 0, "examples": 100, "seconds": 8, "wait_workers_micros": 2000000},
    {"worker": 1, "examples": 60, "seconds": 8, "wait_pushes_micros": 6000000}]})";

TEST(RealRunTest, AReportIsAResult) {
  const auto result = ResultOfReport(kReport);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->seconds(), 8.5);
  EXPECT_EQ(result->median_step_seconds(), 0.2);
  EXPECT_EQ(result->steps(), 40u);
  EXPECT_EQ(result->examples(), 160u);
  EXPECT_EQ(result->push_bytes(), 900u);
  EXPECT_EQ(result->pull_bytes(), 700u);
  EXPECT_EQ(result->late_pushes(), 3u);
  EXPECT_EQ(result->parameters_crc(), 0xDEADBEEF);
  EXPECT_EQ(result->busy(), 0.5);  // the mean of 6/8 and 2/8
  ASSERT_THAT(result->staleness(), SizeIs(2));
  EXPECT_EQ(result->staleness().at(3), 10u);
  ASSERT_THAT(result->point(), SizeIs(2));
  EXPECT_EQ(result->point(0).seconds(), 4.5);
  EXPECT_EQ(result->point(0).step(), 20u);
  EXPECT_EQ(result->point(0).examples(), 80u);
  EXPECT_EQ(result->point(0).push_bytes(), 450u);
  EXPECT_EQ(result->point(0).test_accuracy(), 0.75);
  EXPECT_EQ(result->point(1).examples(), 160u);
  EXPECT_FALSE(result->point(1).has_test_accuracy());
  EXPECT_FALSE(result->point(1).has_test_loss());
  ASSERT_THAT(result->decision(), SizeIs(1));
  EXPECT_EQ(result->decision(0).ShortDebugString(),
            "step: 8 accuracy: 0.5 next_step: 30 candidate { name: \"fp32\" "
            "predicted_accuracy: 0.75 deviation: 0.125 gain_per_second: 0.0625 "
            "gain_deviation: 0.03125 seconds_per_step: 0.25 encoding_error: 0.5 } "
            "candidate { name: \"table_1\" seconds_per_step: 0.125 } chosen: \"fp32\" "
            "layers: \"matrices\"");
}

TEST(RealRunTest, OtherTextsAreNoReports) {
  for (const char* text : {"", "{", "[]", "{\"steps\": 1}"}) {
    EXPECT_EQ(ResultOfReport(text).status(),
              absl::InvalidArgumentError("not a report of thinwire train"));
  }
}

TEST(RealRunTest, SettingsOfSimulatedMachinesAreNamed) {
  EXPECT_TRUE(CheckReal({}).ok());
  const std::vector<std::pair<std::string, std::function<void(Machines&)>>> changes = {
      {"exchange", [](Machines& m) { m.set_exchange(Machines::Exchange::ring); }},
      {"synthetic", [](Machines& m) { m.mutable_synthetic(); }},
      {"imposed_staleness", [](Machines& m) { m.set_imposed_staleness(2); }},
      {"compute.distribution",
       [](Machines& m) {
         m.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
       }},
      {"compute.slow_workers", [](Machines& m) { m.mutable_compute()->set_slow_workers(1); }},
      {"worker_link", [](Machines& m) { m.mutable_worker_link()->set_latency_ms(1); }}};
  for (const auto& [field, change] : changes) {
    RunSpec spec;
    change(spec.machines);
    EXPECT_EQ(CheckReal(spec), absl::InvalidArgumentError(absl::StrCat(
                                   "machines.", field, ": only simulated machines have it")));
  }
}

class ProcessTest : public ::testing::Test {
 protected:
  // Runs a shell script in place of `thinwire`.
  absl::StatusOr<RunResult> Run(const std::string& script) {
    EXPECT_TRUE(dir_->WriteFile("thinwire", "#!/bin/sh\n" + script).ok());
    std::filesystem::permissions(dir_->PathOf("thinwire"), std::filesystem::perms::owner_all);
    Termination termination;
    return RunReal({}, {.thinwire = dir_->PathOf("thinwire"), .folder = dir_->PathOf("real")},
                   termination);
  }

  const std::unique_ptr<TempDir> dir_ = *TempDir::Make(testing::TempDir());
};

TEST_F(ProcessTest, TheReportOfTheProcessIsTheResult) {
  ASSERT_TRUE(dir_->WriteFile("good.json", kReport).ok());
  const auto result =
      Run(absl::StrCat("[ \"$1 $2 $4\" = \"train --config --report\" ] || exit 64\n",
                       "[ -f \"$3\" ] || exit 78\n", "cp ", dir_->PathOf("good.json"), " \"$5\""));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->steps(), 40u);
}

TEST_F(ProcessTest, AFailedProcessIsNamedWithItsLog) {
  const auto result = Run("exit 69");
  EXPECT_EQ(result.status(), absl::UnavailableError(
                                 absl::StrCat("thinwire train: exit code 69 (its messages are in ",
                                              dir_->PathOf("real/log.txt"), ")")));
}

}  // namespace
}  // namespace thinwire::lab
