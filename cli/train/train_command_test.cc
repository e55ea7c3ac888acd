#include "cli/train/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

class TrainCommandTest : public testing::Test {
 protected:
  TrainCommandTest() : dir_(std::move(*TempDir::Make(testing::TempDir()))), flags_(app_) {}

  absl::StatusOr<JobConfig> Parse(const std::string& text, std::vector<std::string> words) {
    EXPECT_TRUE(dir_->WriteFile("job", text).ok());
    std::reverse(words.begin(), words.end());
    app_.parse(words);
    Console console(messages_, {});
    return JobOf(dir_->PathOf("job"), flags_, FilesOf::kThisMachine, console);
  }

  void Script(const std::string& name, const std::string& text) {
    ASSERT_TRUE(dir_->WriteFile(name, "#!/bin/sh\n" + text + "\n").ok());
    std::filesystem::permissions(dir_->PathOf(name), std::filesystem::perms::owner_all);
  }

  // Runs the job with the scripts and returns the exit code.
  ExitCode Run(const JobConfig& config, std::ostream& out, bool verbose = false) {
    TrainCommand command;
    command.verbose = verbose;
    return Run(command, config, out);
  }
  ExitCode Run(TrainCommand command, const JobConfig& config, std::ostream& out) {
    std::filesystem::create_directory(dir_->PathOf("tmp"));
    command.bin_dir = dir_->path();
    command.temp_parent = dir_->PathOf("tmp");
    command.restarts = 0;
    Console console(messages_, {});
    command.output = output_;
    return RunTrain(command, config, console, out);
  }

  std::unique_ptr<TempDir> dir_;
  std::ostringstream messages_;
  OutputFile output_;
  CLI::App app_;
  FieldFlags flags_;
};

TEST_F(TrainCommandTest, AFlagMakesAFileGood) {
  const auto config = Parse("consistency { workers: 4 backup: 1 }", {"--mode", "backup"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->consistency().mode(), Consistency::Mode::backup);
  EXPECT_EQ(config->consistency().backup(), 1);
}

TEST_F(TrainCommandTest, AdaptivePrecisionSetsTheDurabilityThatItNeeds) {
  const auto config = Parse("", {"--push", "adaptive"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->recovery().durability(), Recovery::Durability::checkpoint);
  EXPECT_THAT(
      std::string(Parse("recovery { durability: log }", {"--push", "adaptive"}).status().message()),
      HasSubstr("push: adaptive returns to checkpoints (expected durability: checkpoint, "
                "got durability: log)"));
}

TEST_F(TrainCommandTest, AProblemIsReportedAtItsPlace) {
  EXPECT_THAT(
      std::string(Parse("consistency {\n  backup: 9\n}", {"--workers", "0"}).status().message()),
      testing::AllOf(HasSubstr("--workers: out of range (expected 1 to 65536, got 0)\n"),
                     HasSubstr("/job:2:3: backup: only valid with mode: backup (got mode: sync)")));
  EXPECT_EQ(Parse("", {"--density", "0.1"}).status().message(),
            "--density: only valid with push: topk, randomk or dct_topk (got push: fp32)");
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

TEST_F(TrainCommandTest, WarningsAreShownAndMissingFilesAreErrors) {
  ASSERT_TRUE(Parse("", {"--pull", "delta", "--data_dir", dir_->path()}).ok());
  EXPECT_THAT(messages_.str(), HasSubstr("warning: --pull: saves few bytes"));
}

TEST_F(TrainCommandTest, AMissingFolderIsReportedBeforeTheRun) {
  EXPECT_THAT(std::string(Parse("task { data_dir: '/nowhere' }", {}).status().message()),
              HasSubstr("/job:1:8: data_dir: no such folder"));
}

TEST_F(TrainCommandTest, GrowToFitsTheJob) {
  const auto check = [this](const std::string& text, uint32_t grow_to) {
    const auto config = Parse(text, {});
    EXPECT_TRUE(config.ok()) << config.status();
    return std::string(CheckGrowTo(grow_to, *config).message());
  };
  const std::string growing = "optimization { schedule: noise_scale } ";
  EXPECT_EQ(check("", 0), "");
  EXPECT_EQ(check("", 8),
            "--grow_to: only valid with schedule: noise_scale (got schedule: constant)");
  EXPECT_EQ(check(growing + "consistency { workers: 2 }", 3), "");
  EXPECT_EQ(check(growing + "consistency { workers: 2 }", 64), "");
  EXPECT_EQ(check(growing + "consistency { workers: 2 max_workers: 5 }", 6),
            "--grow_to: out of range (expected above 2, the value of workers, and at most 5, the "
            "value of max_workers, got 6)");
  for (const uint32_t workers : {1, 2}) {
    EXPECT_THAT(check(growing + "consistency { workers: 2 }", workers),
                HasSubstr("expected above 2, the value of workers, and at most 64"));
  }
}

constexpr char kServer[] = "echo listening 127.0.0.1:1; exec sleep 1000";
constexpr char kWorker[] = "echo '{\"worker\":0,\"done\":{\"steps\":\"5\",\"seconds\":1}}'";

TEST_F(TrainCommandTest, ARunLeavesATableAReportAndNothingElse) {
  // Blocks the signals before the fake server starts threads, in which they would otherwise be
  // lost.
  const auto signals = Signals::Block();
  FakeControlServer control("tensor", "aaaa");
  Script("server", absl::StrCat("echo listening ", control.address(), "; exec sleep 1000"));
  Script("worker", kWorker);
  JobConfig config;
  config.set_report(dir_->PathOf("report.json"));
  std::ostringstream out;
  EXPECT_EQ(Run(config, out), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(out.str(), HasSubstr("1 of 1 done"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_->PathOf("tmp")));
  std::ifstream in(config.report());
  EXPECT_EQ(nlohmann::json::parse(in)["steps"], 5);
}

TEST_F(TrainCommandTest, OnlyChangedSettingsAreShownUnlessAllAreWanted) {
  Script("server", kServer);
  Script("worker", kWorker);
  JobConfig config;
  config.mutable_task()->set_epochs(2);
  std::ostringstream out;
  Run(config, out);
  EXPECT_THAT(messages_.str(), HasSubstr("have their defaults\ntask { epochs: 2 }\n# the run\n"));
  EXPECT_THAT(messages_.str(), Not(HasSubstr("batch_size")));
  Run(config, out, /*verbose=*/true);
  EXPECT_THAT(messages_.str(), HasSubstr("  batch_size: 32\n"));
}

TEST_F(TrainCommandTest, ARunWithoutAStepHasNoTableAndKeepsItsLogs) {
  Script("server", kServer);
  Script("worker", "echo bad data >&2; exit 78");
  std::ostringstream out;
  EXPECT_EQ(Run(JobConfig(), out), ExitCode::kConfig);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(messages_.str(),
              HasSubstr("error: worker 0 lost: exit code 78: bad data\nThe logs of all processes "
                        "are in " +
                        dir_->PathOf("tmp") + "/thinwire-"));
  int logs = 0;
  for (const auto& folder : std::filesystem::directory_iterator(dir_->PathOf("tmp"))) {
    logs += std::filesystem::exists(folder.path() / "worker 0.log") ? 1 : 0;
  }
  EXPECT_EQ(logs, 1);
}

class StateDirTest : public TrainCommandTest {
 protected:
  // The server writes its arguments to the file `arguments`.
  void SetUp() override {
    Script("server", absl::StrCat("echo \"$*\" > ", dir_->PathOf("arguments"), "; ", kServer));
    Script("worker", kWorker);
    config_.set_name("fashion");
    config_.mutable_recovery()->set_durability(Recovery::Durability::log);
  }

  std::string Arguments() const {
    std::ostringstream text;
    text << std::ifstream(dir_->PathOf("arguments")).rdbuf();
    return text.str();
  }

  ExitCode RunIn(const std::string& state_dir, bool resume = false) {
    TrainCommand command;
    command.state_dir = state_dir;
    command.resume = resume;
    std::ostringstream out;
    return Run(command, config_, out);
  }

  JobConfig config_;
};

TEST_F(StateDirTest, TheServersGetTheFolderWhichIsCreated) {
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(Arguments(), HasSubstr(" --state_dir " + dir_->PathOf("state") + "\n"));
  EXPECT_TRUE(std::filesystem::exists(dir_->PathOf("state/job.textproto")));
}

TEST_F(StateDirTest, WithoutAFolderTheStateIsInTheTemporaryFolderOfTheRun) {
  EXPECT_EQ(RunIn(""), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(Arguments(), HasSubstr(" --state_dir " + dir_->PathOf("tmp") + "/thinwire-"));
  EXPECT_THAT(Arguments(), testing::EndsWith("/state\n"));
}

TEST_F(StateDirTest, WithoutDurabilityTheServersGetNoFolderAndAGivenOneIsRefused) {
  config_.clear_recovery();
  EXPECT_EQ(RunIn(""), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(Arguments(), Not(HasSubstr("--state_dir")));
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(),
              HasSubstr("error: --state_dir: only valid with durability: checkpoint or "
                        "log (got durability: none)\n"));
}

TEST_F(StateDirTest, AFolderOfARunNeedsResume) {
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: --state_dir: holds a run of job fashion (expected "
                                         "an empty folder, or --resume to go on)\n"));
}

TEST_F(StateDirTest, AFolderWithOtherFilesIsRefused) {
  EXPECT_EQ(RunIn(dir_->path()), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(),
              HasSubstr(dir_->path() + " is not empty (expected an empty folder)\n"));
  EXPECT_FALSE(std::filesystem::exists(dir_->PathOf("job.textproto")));
}

TEST_F(StateDirTest, AFolderThatCannotBeCreatedIsNamed) {
  EXPECT_EQ(RunIn("/nowhere/state"), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(),
              HasSubstr("error: --state_dir: /nowhere/state: No such file or directory\n"));
}

TEST_F(StateDirTest, ResumeNeedsTheFolderOfARunOfThisJob) {
  EXPECT_EQ(RunIn("", /*resume=*/true), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(),
              HasSubstr("error: --resume: only valid with --state_dir (got none)"));
  EXPECT_EQ(RunIn(dir_->PathOf("state"), /*resume=*/true), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: --resume: no run in " + dir_->PathOf("state")));
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kOk) << messages_.str();
  config_.set_name("cifar");
  EXPECT_EQ(RunIn(dir_->PathOf("state"), /*resume=*/true), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: --state_dir: holds a run of another job (expected "
                                         "cifar, got fashion)\n"));
}

TEST_F(StateDirTest, AResumedRunGoesOnFromTheStateInItsFolder) {
  Script("worker",
         absl::StrCat("echo '{\"worker\":0,\"joined\":{\"step\":\"412\",\"planned_steps\":"
                      "\"500\"}}'; ",
                      kWorker));
  for (const auto durability : {Recovery::Durability::log, Recovery::Durability::checkpoint}) {
    config_.mutable_recovery()->set_durability(durability);
    const std::string dir = dir_->PathOf(Recovery::Durability::Value_Name(durability));
    messages_.str("");
    EXPECT_EQ(RunIn(dir), ExitCode::kOk) << messages_.str();
    EXPECT_THAT(messages_.str(), Not(HasSubstr("going on")));
    EXPECT_EQ(RunIn(dir, /*resume=*/true), ExitCode::kOk) << messages_.str();
    EXPECT_THAT(messages_.str(), HasSubstr("going on from step 412\n"));
  }
}

TEST_F(StateDirTest, OtherServersNeedACheckpoint) {
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kOk) << messages_.str();
  std::filesystem::create_directory(dir_->PathOf("state/server-0"));
  config_.set_servers(3);
  EXPECT_EQ(RunIn(dir_->PathOf("state"), /*resume=*/true), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(),
              HasSubstr("/server-0: no checkpoint to convert; resume the run with servers: 1 and "
                        "shard_size: 0, and stop it when thinwire checkpoint list shows one\n"));
}

TEST_F(StateDirTest, ARunThatHasSavedNothingBeginsWithOtherServers) {
  config_.mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kOk) << messages_.str();
  std::filesystem::create_directory(dir_->PathOf("state/server-0"));
  config_.set_servers(3);
  EXPECT_EQ(RunIn(dir_->PathOf("state"), /*resume=*/true), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(messages_.str(),
              HasSubstr("the run had not saved anything, so it begins with 3 servers\n"));
  messages_.str("");
  EXPECT_EQ(RunIn(dir_->PathOf("state"), /*resume=*/true), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(messages_.str(), Not(HasSubstr("had not saved")));
}

TEST_F(StateDirTest, AStoppedRunSaysHowItGoesOn) {
  Script("worker", absl::StrCat("trap 'exit 75' TERM; kill -TERM ", getpid(),
                                "; while :; do sleep 0.05; done"));
  EXPECT_EQ(RunIn(dir_->PathOf("state")), ExitCode::kPreempted);
  EXPECT_THAT(messages_.str(), HasSubstr("The run can go on from its state in " +
                                         dir_->PathOf("state") + ": add --resume\n"));
}

TEST_F(TrainCommandTest, ATableThatCannotBeWrittenIsAnError) {
  Script("server", kServer);
  Script("worker", kWorker);
  JobConfig config;
  config.set_report(dir_->PathOf("report.json"));
  std::ofstream full("/dev/full");
  EXPECT_EQ(Run(config, full), ExitCode::kIo);
  EXPECT_THAT(messages_.str(), HasSubstr("error: standard output: cannot be written"));
  EXPECT_GT(std::filesystem::file_size(config.report()), 0u);
}

TEST_F(TrainCommandTest, AReportThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  Script("server", "exit 1");
  Script("worker", "exit 1");
  JobConfig config;
  config.set_report("/nowhere/report.json");
  std::ostringstream out;
  EXPECT_EQ(Run(config, out), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: report: /nowhere/report.json"));
  EXPECT_THAT(messages_.str(), Not(HasSubstr("# the run")));
}

TEST_F(TrainCommandTest, AModelFileThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  Script("server", "exit 1");
  Script("worker", "exit 1");
  output_.path = "/nowhere/m.safetensors";
  std::ostringstream out;
  EXPECT_EQ(Run(JobConfig(), out), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: --output: /nowhere/m.safetensors: cannot write"));
  EXPECT_THAT(messages_.str(), Not(HasSubstr("# the run")));
}

}  // namespace
}  // namespace thinwire
