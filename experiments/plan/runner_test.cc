#include "experiments/plan/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"
#include "experiments/plan/results.h"

namespace thinwire::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kText[] = R"(name: "small"
title: "A title"
job { task { model: softmax } }
axis {
  name: "workers"
  setting { name: "two" job { consistency { workers: 2 } } }
  setting { name: "three" job { consistency { workers: 3 } } }
}
seeds: 2
figure { kind: table title: "All" }
)";

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class RunnerTest : public ::testing::Test {
 protected:
  // Runs TEXT in FOLDER with runs that take no time and stop after `limit_` runs.
  absl::Status Run(const std::string& folder, const std::string& text = kText) {
    const auto plan = PlanExperiment(text, "small.textproto", {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    const RunnerParts parts = {
        .run = [this](const RunSpec& spec, const RunControl& control) -> absl::StatusOr<RunResult> {
          if (!control.progress(0.5)) return absl::CancelledError("stopped");
          ran_.push_back(absl::StrCat(spec.job.rule.workers, "/", spec.job.task.seed));
          if (!failure_.ok()) return failure_;
          RunResult result;
          result.set_seconds(spec.job.rule.workers + 0.1 * static_cast<double>(spec.job.task.seed));
          result.set_steps(7);
          result.set_parameters_crc(0xAB);
          for (uint64_t i = 0; i < 20; ++i) (*result.mutable_staleness())[i * 37 % 20] = i + 1;
          (*result.mutable_value_age())[3] = 4;
          RunResult::Point& point = *result.add_point();
          point.set_seconds(1.0 / 3);
          point.set_test_accuracy(0.75);
          point.set_test_loss(0.5);
          if (spec.job.task.seed == 1) point.set_noise_scale(400);
          return result;
        },
        .identity = [this](const RunSpec&) { return absl::StatusOr<std::string>(identity_); },
        .stopped = [this] { return ran_.size() >= limit_; }};
    ManualClock clock;
    Console console(messages_, {});
    return RunPlan(*plan, {.folder = folder, .threads = 2}, parts, clock, console);
  }

  std::string Folder(const std::string& name) { return dir_->PathOf(name); }

  const std::unique_ptr<TempDir> dir_ = *TempDir::Make(testing::TempDir());
  std::vector<std::string> ran_;
  size_t limit_ = 1000;
  absl::Status failure_;
  std::string identity_ = "program 1";
  std::ostringstream messages_;
};

TEST_F(RunnerTest, TheTablesHaveTheRunsInTheirOrder) {
  ASSERT_TRUE(Run(Folder("out")).ok());
  EXPECT_THAT(ran_, ElementsAre("2/1", "2/2", "3/1", "3/2"));
  EXPECT_EQ(ReadFile(Folder("out/runs.csv")),
            "run,workers,seed,seconds,median_step_seconds,steps,updates,examples,push_bytes,"
            "pull_bytes,busy,test_accuracy,test_loss,late_pushes,dropped_pushes,parameters_crc,"
            "density,sent_values,model_values\n"
            "0,two,1,2.1,0,7,0,0,0,0,0,0.75,0.5,0,0,000000ab,nan,nan,nan\n"
            "1,two,2,2.2,0,7,0,0,0,0,0,0.75,0.5,0,0,000000ab,nan,nan,nan\n"
            "2,three,1,3.1,0,7,0,0,0,0,0,0.75,0.5,0,0,000000ab,nan,nan,nan\n"
            "3,three,2,3.2,0,7,0,0,0,0,0,0.75,0.5,0,0,000000ab,nan,nan,nan\n");
  EXPECT_THAT(ReadFile(Folder("out/curves.csv")),
              HasSubstr("\n0,0.3333333333333333,0,0,0,0,0,0,0.5,0.75,400\n1,"));
  EXPECT_THAT(ReadFile(Folder("out/curves.csv")), HasSubstr(",0.75,\n2,"));
  EXPECT_THAT(ReadFile(Folder("out/staleness.csv")), HasSubstr("\n0,18,15\n0,19,8\n1,0,1\n"));
  EXPECT_EQ(ReadFile(Folder("out/value_age.csv")), "run,age,values\n0,3,4\n1,3,4\n2,3,4\n3,3,4\n");
}

TEST_F(RunnerTest, TheDescriptionHasAxesAndFigures) {
  ASSERT_TRUE(Run(Folder("out")).ok());
  EXPECT_EQ(nlohmann::json::parse(ReadFile(Folder("out/experiment.json"))),
            nlohmann::json::parse(R"({"name": "small", "title": "A title", "question": "",
              "quality": "accuracy", "target_accuracy": 0.0, "target_loss": 0.0,
              "axes": [{"name": "workers", "settings": ["two", "three"]}],
              "figures": [{"kind": "table", "title": "All"}], "claims": []})"));
}

TEST_F(RunnerTest, AStoppedExperimentGoesOnWithTheSameFiles) {
  ASSERT_TRUE(Run(Folder("whole")).ok());
  ran_.clear();
  limit_ = 3;
  EXPECT_TRUE(absl::IsCancelled(Run(Folder("parts"))));
  EXPECT_FALSE(std::filesystem::exists(Folder("parts/runs.csv")));
  EXPECT_THAT(ran_, ElementsAre("2/1", "2/2", "3/1"));
  limit_ = 1000;
  ASSERT_TRUE(Run(Folder("parts")).ok());
  EXPECT_THAT(ran_, ElementsAre("2/1", "2/2", "3/1", "3/2"));
  EXPECT_THAT(messages_.str(), HasSubstr("has the results of 3 of 4 runs"));
  for (const char* file :
       {"experiment.json", "runs.csv", "curves.csv", "staleness.csv", "value_age.csv"}) {
    EXPECT_EQ(ReadFile(Folder(absl::StrCat("parts/", file))),
              ReadFile(Folder(absl::StrCat("whole/", file))))
        << file;
  }
}

TEST_F(RunnerTest, AResultIsUsedOnlyForTheSameSettingsAndTheSameProgram) {
  ASSERT_TRUE(Run(Folder("out")).ok());
  ran_.clear();
  ASSERT_TRUE(Run(Folder("out")).ok());
  EXPECT_THAT(ran_, ElementsAre());
  std::string text = kText;
  text.replace(text.find("workers: 3"), 10, "workers: 4");
  ASSERT_TRUE(Run(Folder("out"), text).ok());
  EXPECT_THAT(ran_, ElementsAre("4/1", "4/2"));
  ran_.clear();
  identity_ = "program 2";
  ASSERT_TRUE(Run(Folder("out")).ok());
  EXPECT_THAT(ran_, ElementsAre("2/1", "2/2", "3/1", "3/2"));
}

TEST(ExactNumberTest, NumbersAreReadBackExactly) {
  for (const double value : {0.1, 1.0 / 3, 1e300, -2.5, 7.0}) {
    EXPECT_EQ(std::stod(ExactNumber(value)), value);
  }
  EXPECT_EQ(ExactNumber(0.1), "0.1");
  EXPECT_EQ(ExactNumber(-std::nan("")), "nan");
}

TEST_F(RunnerTest, AChangedTraceIsAnotherRun) {
  RunSpec spec;
  spec.folder = dir_->path();
  spec.machines.mutable_compute()->set_trace("trace.csv");
  const std::string absent = ResultKey(spec, "program");
  ASSERT_TRUE(dir_->WriteFile("trace.csv", "worker,step,seconds\n").ok());
  const std::string empty = ResultKey(spec, "program");
  EXPECT_NE(absent, empty);
  EXPECT_EQ(empty, ResultKey(spec, "program"));
}

TEST_F(RunnerTest, TheFolderOfAnotherExperimentIsRefused) {
  ASSERT_TRUE(Run(Folder("out")).ok());
  const absl::Status other = Run(Folder("out"), "name: \"other\" job { task { model: softmax } }");
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("the folder of another experiment (expected \"other\", got \"small\")"));
  std::filesystem::create_directory(Folder("full"));
  ASSERT_TRUE(dir_->WriteFile("full/notes.txt", "mine").ok());
  EXPECT_THAT(std::string(Run(Folder("full")).message()), HasSubstr("has other files"));
  EXPECT_FALSE(std::filesystem::exists(Folder("full/runs")));
}

TEST_F(RunnerTest, AFailedRunIsNamed) {
  failure_ = absl::InvalidArgumentError("push: auto is not supported");
  EXPECT_EQ(Run(Folder("out")),
            absl::InvalidArgumentError("workers=two, seed 1: push: auto is not supported"));
}

}  // namespace
}  // namespace thinwire::lab
