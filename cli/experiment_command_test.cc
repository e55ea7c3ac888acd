#include "cli/experiment_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExperimentCommandTest, TheLaboratoryGetsTheFlags) {
  ExperimentCommand command;
  CLI::App app;
  AddExperiment(app, command);
  app.parse(
      "experiment run a.textproto --out out --quick --real --only mode=sync --only mode=ssp "
      "--seeds 2 --threads 4",
      /*program_name_included=*/false);
  EXPECT_TRUE(command.run->parsed());
  EXPECT_THAT(
      LaboratoryCommand(command, "/bin/laboratory"),
      ElementsAre("/bin/laboratory", "run", "a.textproto", "--out", "out", "--quick", "--real",
                  "--only", "mode=sync", "--only", "mode=ssp", "--seeds", "2", "--threads", "4"));
}

TEST(ExperimentCommandTest, FlagsThatAreNotGivenAreLeftToTheLaboratory) {
  ExperimentCommand command;
  CLI::App app;
  AddExperiment(app, command);
  app.parse("experiment run a.textproto", false);
  EXPECT_THAT(LaboratoryCommand(command, "lab"), ElementsAre("lab", "run", "a.textproto"));
}

TEST(ExperimentCommandTest, TheLaboratoryReplaysARecordedRun) {
  ExperimentCommand command;
  CLI::App app;
  AddExperiment(app, command);
  app.parse(
      "experiment replay state --set learning_rate=0.1 --set push=int8 --payloads --threads 2",
      false);
  EXPECT_TRUE(command.replay->parsed());
  EXPECT_THAT(LaboratoryCommand(command, "lab"),
              ElementsAre("lab", "replay", "state", "--set", "learning_rate=0.1", "--set",
                          "push=int8", "--payloads", "--threads", "2"));
}

class CompareTest : public ::testing::Test {
 protected:
  // Writes the file runs.csv of the folder NAME and returns the folder.
  std::string Folder(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(dir_->PathOf(name));
    EXPECT_TRUE(dir_->WriteFile(name + "/runs.csv", text).ok());
    return dir_->PathOf(name);
  }

  const std::unique_ptr<TempDir> dir_ = *TempDir::Make(testing::TempDir());
};

constexpr char kHeader[] =
    "run,mode,seed,median_step_seconds,test_accuracy,test_loss,parameters_crc\n";

TEST_F(CompareTest, CasesStandSideBySide) {
  const std::string simulated =
      Folder("virtual",
             std::string(kHeader) +
                 "0,sync,1,0.1,0.9,0.3,0a\n1,sync,2,0.12,0.92,0.3,0b\n2,ring,1,0.3,0.8,0.4,0c\n");
  const std::string real = Folder(
      "real", std::string(kHeader) + "0,sync,1,0.1,0.875,0.3,0a\n1,sync,2,0.1,0.875,0.3,0d\n");
  const auto table = CompareRuns(simulated, real);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table,
            "mode  virtual ms  real ms  difference  virtual accuracy     real accuracy  difference "
            " equal parameters\n"
            "sync      110.00   100.00     +10.0 %  0.9100 +- 0.0141  0.8750 +- 0.0000     +0.0350 "
            "           1 of 2\n");
}

TEST_F(CompareTest, WithoutAccuraciesLossesStandSideBySide) {
  const std::string simulated =
      Folder("virtual", std::string(kHeader) + "0,sync,1,0.1,nan,2.5,0a\n");
  const std::string real = Folder("real", std::string(kHeader) + "0,sync,1,0.1,nan,2.25,0a\n");
  const auto table = CompareRuns(simulated, real);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, HasSubstr("virtual loss"));
  EXPECT_THAT(*table, HasSubstr("2.5000 +- 0.0000  2.2500 +- 0.0000     +0.2500"));
}

TEST_F(CompareTest, FoldersOfOtherExperimentsAreRefused) {
  const std::string simulated =
      Folder("virtual", std::string(kHeader) + "0,sync,1,0.1,0.9,0.3,0a\n");
  EXPECT_THAT(std::string(CompareRuns(simulated, dir_->PathOf("absent")).status().message()),
              HasSubstr("runs.csv: cannot be read"));
  EXPECT_THAT(std::string(CompareRuns(simulated, Folder("other",
                                                        "run,codec,seed,median_step_seconds,"
                                                        "test_accuracy,test_loss,parameters_crc\n"))
                              .status()
                              .message()),
              HasSubstr("another experiment (expected the axes \"mode\", got \"codec\")"));
  EXPECT_THAT(std::string(CompareRuns(simulated, Folder("few", "run,mode\n")).status().message()),
              HasSubstr("few/runs.csv:1: no column seed"));
  EXPECT_THAT(std::string(CompareRuns(simulated, Folder("bad", std::string(kHeader) + "0,a,b\n"))
                              .status()
                              .message()),
              HasSubstr("bad/runs.csv:2: wrong row (expected 7 values, got \"0,a,b\")"));
  EXPECT_THAT(std::string(CompareRuns(simulated,
                                      Folder("none", std::string(kHeader) + "0,ssp,1,1,1,1,0a\n"))
                              .status()
                              .message()),
              HasSubstr("no case of"));
}

}  // namespace
}  // namespace thinwire
