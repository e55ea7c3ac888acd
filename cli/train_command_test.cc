#include "cli/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/temp_dir.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

class TrainCommandTest : public testing::Test {
 protected:
  TrainCommandTest() : dir_(std::move(*TempDir::Make(testing::TempDir()))), flags_(app_) {}

  absl::StatusOr<JobConfig> Parse(const std::string& text, std::vector<std::string> words) {
    EXPECT_TRUE(dir_->WriteFile("job", text).ok());
    std::reverse(words.begin(), words.end());
    app_.parse(words);
    return JobOf(dir_->PathOf("job"), flags_);
  }

  void Script(const std::string& name, const std::string& text) {
    ASSERT_TRUE(dir_->WriteFile(name, "#!/bin/sh\n" + text + "\n").ok());
    std::filesystem::permissions(dir_->PathOf(name), std::filesystem::perms::owner_all);
  }

  std::unique_ptr<TempDir> dir_;
  CLI::App app_;
  FieldFlags flags_;
};

TEST_F(TrainCommandTest, AFlagMakesAFileGood) {
  const auto config = Parse("consistency { workers: 4 backup: 1 }", {"--mode", "backup"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->consistency().mode(), Consistency::Mode::backup);
  EXPECT_EQ(config->consistency().backup(), 1);
}

TEST_F(TrainCommandTest, AProblemIsReportedAtItsPlace) {
  EXPECT_THAT(
      std::string(Parse("consistency {\n  backup: 9\n}", {"--workers", "0"}).status().message()),
      testing::AllOf(HasSubstr("--workers: out of range (expected 1 to 65536, got 0)\n"),
                     HasSubstr("/job:2:3: backup: only valid with mode: backup (got mode: sync)")));
  EXPECT_EQ(Parse("", {"--density", "0.1"}).status().message(),
            "--density: only valid with push: topk or randomk (got push: fp32)");
}

TEST_F(TrainCommandTest, AFlagReplacesASettingTogetherWithItsDetailsInTheFile) {
  const auto config =
      Parse("optimization { optimizer: momentum momentum: 0.5 }", {"--optimizer", "sgd"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->optimization().optimizer(), Optimization::Optimizer::sgd);
  EXPECT_FALSE(config->optimization().has_momentum());
}

TEST_F(TrainCommandTest, ASyntaxErrorIsReportedAlone) {
  EXPECT_THAT(std::string(Parse("servers: two\ncompression { density: 2 }", {}).status().message()),
              testing::EndsWith("/job:1:1: servers: wrong value (expected a whole number from 0 to "
                                "4294967295, got two)"));
}

TEST_F(TrainCommandTest, ARunLeavesATableAReportAndNothingElse) {
  Script("server", "echo listening 127.0.0.1:1; exec sleep 1000");
  Script("worker", "echo '{\"worker\":0,\"done\":{\"steps\":\"5\",\"seconds\":1}}'");
  JobConfig config;
  config.set_report(dir_->PathOf("report.json"));
  std::filesystem::create_directory(dir_->PathOf("tmp"));
  std::ostringstream messages, out;
  Console console(messages, {});
  EXPECT_EQ(RunTrain({.config_file = "",
                      .bin_dir = dir_->path(),
                      .self = "",
                      .temp_parent = dir_->PathOf("tmp")},
                     config, console, out),
            ExitCode::kOk);
  EXPECT_THAT(out.str(), HasSubstr("1 of 1 done"));
  EXPECT_THAT(messages.str(), HasSubstr("batch_size: 32"));
  std::ifstream in(config.report());
  EXPECT_EQ(nlohmann::json::parse(in)["steps"], 5);
  EXPECT_TRUE(std::filesystem::is_empty(dir_->PathOf("tmp")));
}

TEST_F(TrainCommandTest, ATableThatCannotBeWrittenIsTold) {
  Script("server", "echo listening 127.0.0.1:1; exec sleep 1000");
  Script("worker", "echo '{\"worker\":0,\"done\":{\"steps\":\"5\",\"seconds\":1}}'");
  JobConfig config;
  config.set_report(dir_->PathOf("report.json"));
  std::ostringstream messages;
  std::ofstream full("/dev/full");
  Console console(messages, {});
  EXPECT_EQ(
      RunTrain(
          {.config_file = "", .bin_dir = dir_->path(), .self = "", .temp_parent = dir_->path()},
          config, console, full),
      ExitCode::kUnavailable);
  EXPECT_THAT(messages.str(), HasSubstr("error: standard output: cannot be written"));
  EXPECT_GT(std::filesystem::file_size(config.report()), 0u);
}

TEST_F(TrainCommandTest, AReportThatCannotBeWrittenIsToldBeforeTheRun) {
  Script("server", "exit 1");
  Script("worker", "exit 1");
  JobConfig config;
  config.set_report("/nowhere/report.json");
  std::ostringstream messages, out;
  Console console(messages, {});
  EXPECT_EQ(
      RunTrain(
          {.config_file = "", .bin_dir = dir_->path(), .self = "", .temp_parent = dir_->path()},
          config, console, out),
      ExitCode::kConfig);
  EXPECT_THAT(messages.str(), HasSubstr("/nowhere/report.json: cannot be written"));
}

}  // namespace
}  // namespace thinwire
