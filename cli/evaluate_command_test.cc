#include "cli/evaluate_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

// In these tests the worker is a shell script.
class EvaluateCommandTest : public testing::Test {
 protected:
  EvaluateCommandTest() : dir_(std::move(*TempDir::Make(testing::TempDir()))) {}

  ExitCode Run(const std::string& worker) {
    for (const char* name : {"server", "worker"}) {
      EXPECT_TRUE(dir_->WriteFile(name, absl::StrCat("#!/bin/sh\n", worker, "\n")).ok());
      std::filesystem::permissions(dir_->PathOf(name), std::filesystem::perms::owner_all);
    }
    std::filesystem::create_directory(dir_->PathOf("tmp"));
    JobConfig config;
    config.mutable_task()->set_test_examples(77);
    Console console(messages_, {});
    const ExitCode code = RunEvaluate({.config_file = "",
                                       .model = "m.safetensors",
                                       .bin_dir = dir_->path(),
                                       .self = "",
                                       .temp_parent = dir_->PathOf("tmp")},
                                      config, console, out_);
    EXPECT_TRUE(std::filesystem::is_empty(dir_->PathOf("tmp")));
    return code;
  }

  std::unique_ptr<TempDir> dir_;
  std::ostringstream messages_;
  std::ostringstream out_;
};

TEST_F(EvaluateCommandTest, TheResultOfTheWorkerIsPrinted) {
  EXPECT_EQ(Run("[ \"$1 $3 $4\" = '--config --evaluate m.safetensors' ] || exit 9; "
                "grep -q 'test_examples: 77' \"$2\" || exit 8; "
                "echo '{\"worker\":0,\"done\":{\"evaluator\":true,\"final_test_accuracy\":0.89312,"
                "\"final_test_loss\":0.25}}'"),
            ExitCode::kOk)
      << messages_.str();
  EXPECT_EQ(out_.str(), "test accuracy 0.8931\ntest loss 0.2500\n");
  EXPECT_EQ(messages_.str(), "");
}

TEST_F(EvaluateCommandTest, AResultWithoutAccuracyHasALoss) {
  EXPECT_EQ(Run("echo '{\"worker\":0,\"done\":{\"evaluator\":true,\"final_test_loss\":0.25}}'"),
            ExitCode::kOk)
      << messages_.str();
  EXPECT_EQ(out_.str(), "test loss 0.2500\n");
}

TEST_F(EvaluateCommandTest, AReportedErrorIsShownAloneWithTheWorkersExitCode) {
  EXPECT_EQ(Run("echo '{\"worker\":0,\"error\":{\"message\":\"m.safetensors: no such file\"}}'; "
                "echo 'E1122 10:00:00.0 7 main.cc:9] m.safetensors: no such file' >&2; exit 78"),
            ExitCode::kConfig);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(messages_.str(), "error: m.safetensors: no such file\n");
}

TEST_F(EvaluateCommandTest, TheLastLogLineExplainsAWorkerThatReportedNoError) {
  EXPECT_EQ(Run("echo out of memory >&2; exit 70"), ExitCode::kSoftware);
  EXPECT_EQ(messages_.str(), "error: out of memory\n");
}

TEST_F(EvaluateCommandTest, AKilledWorkerIsAnError) {
  EXPECT_EQ(Run("kill -9 $$"), ExitCode::kUnavailable);
  EXPECT_EQ(messages_.str(), "error: worker: killed by signal 9 (Killed)\n");
}

TEST(JobToEvaluateTest, FlagsReplaceFieldsAndMissingFilesAreErrors) {
  const auto dir = *TempDir::Make(testing::TempDir());
  ASSERT_TRUE(dir->WriteFile("job", "task { model: mlp test_examples: 5 }").ok());
  CLI::App app;
  const FieldFlags flags(app, {"test_examples", "data_dir"});
  const auto parse = [&](std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return JobToEvaluate(dir->PathOf("job"), flags);
  };
  const auto config = parse({"--test_examples", "9", "--data_dir", dir->path()});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task().test_examples(), 9);
  EXPECT_EQ(config->task().model(), Task::Model::mlp);
  EXPECT_THAT(std::string(parse({"--data_dir", "/nowhere"}).status().message()),
              HasSubstr("no such folder"));
}

}  // namespace
}  // namespace thinwire
