// Tests `schedule: noise_scale` with real processes and data: the batch grows during a run, workers
// are started for it, and every example of every epoch is trained on once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "cli/rpc/server_calls.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// A growth begins about three seconds after the decision, so each step of the first batch takes 20
// ms.
constexpr char kConfig[] = R"(
  name: "growth"
  servers: 2
  consistency { mode: sync workers: 2 }
  optimization { optimizer: sgd learning_rate: 0.1 schedule: noise_scale largest_batch: 64 }
  recovery { durability: log }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 4 epochs: 4 }
  straggler: "0:20ms"
)";
constexpr uint64_t kExamples = 4 * 3000;
constexpr uint64_t kStepsWithoutGrowth = 4 * 375;

// Blocks until the server with the address LEAD reports that each worker accumulates two batches.
bool AwaitGrowth(const std::string& lead) {
  ServerCalls calls({lead});
  const absl::Time deadline = absl::Now() + Daemons::kTimeout;
  while (absl::Now() < deadline) {
    const auto statuses = calls.Status(Daemons::kTimeout);
    if (!statuses.ok()) return false;
    if ((*statuses)[0].accumulate() >= 2) return true;
  }
  return false;
}

class GrowthTest : public testing::Test {
 protected:
  GrowthTest() { setenv("TMPDIR", daemons_.folder().c_str(), /*overwrite=*/1); }

  Daemons daemons_;
};

TEST_F(GrowthTest, TheBatchGrowsAndALeadThatIsKilledKeepsIt) {
  const std::string report_path = daemons_.folder() + "/report.json";
  const std::string state_dir = daemons_.folder() + "/state";
  daemons_.Start("train", "cli/thinwire",
                 {"train", "--config", daemons_.Write("train.textproto", kConfig), "--report",
                  report_path, "--state_dir", state_dir});
  ASSERT_TRUE(daemons_.WaitForLog("train", "servers "));
  const std::string log = daemons_.LogOf("train");
  const size_t begin = log.find("servers ") + 8;
  ASSERT_TRUE(AwaitGrowth(log.substr(begin, log.find(',', begin) - begin)));
  const pid_t lead = FindProcess({"--server 0 ", state_dir});
  ASSERT_GT(lead, 0);
  kill(lead, SIGKILL);
  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json report = ReadReport(report_path);
  ASSERT_TRUE(report.is_object()) << end.log;
  ASSERT_EQ(report["restarts"].size(), 1u) << report["restarts"];
  uint64_t examples = 0;
  for (const auto& worker : report["worker_rows"]) examples += worker["examples"].get<uint64_t>();
  EXPECT_EQ(examples, kExamples);
  EXPECT_GE(report["accumulate"], 2);
  EXPECT_LE(report["batch"], 64);
  EXPECT_EQ(report["batch"], report["accumulate"].get<uint64_t>() * 8);
  EXPECT_LT(report["steps"], kStepsWithoutGrowth);
  EXPECT_EQ(report["updates"], report["steps"]);
  EXPECT_EQ(report["epoch_rows"].size(), 4u);
  EXPECT_GT(report["final_test_accuracy"], 0.6);
  EXPECT_THAT(end.output, HasSubstr("last batch"));
  EXPECT_TRUE(report["problems"].empty()) << report["problems"];
}

// The batch doubles once, from 8 to 16 examples. Every step takes 30 ms, so that the added workers
// start before the last one.
constexpr char kGrowing[] = R"(
  name: "workers"
  servers: 2
  consistency { mode: sync workers: 2 }
  optimization { optimizer: sgd learning_rate: 0.02 schedule: noise_scale largest_batch: 16 }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 4 epochs: 8 }
  straggler: "0:30ms"
)";

TEST_F(GrowthTest, AGrownBatchStartsWorkersThatShareIt) {
  const std::string report_path = daemons_.folder() + "/report.json";
  daemons_.Start("train", "cli/thinwire",
                 {"train", "--config", daemons_.Write("train.textproto", kGrowing), "--report",
                  report_path, "--grow_to", "4"});
  ASSERT_TRUE(daemons_.WaitForLog("train", "workers 2 -> 4"));
  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json report = ReadReport(report_path);
  ASSERT_TRUE(report.is_object()) << end.log;
  EXPECT_EQ(report["workers"], 2);
  EXPECT_EQ(report["most_workers"], 4);
  ASSERT_EQ(report["worker_rows"].size(), 4u);
  uint64_t examples = 0;
  for (const auto& worker : report["worker_rows"]) {
    EXPECT_EQ(worker["state"], "done") << worker;
    EXPECT_GT(worker["examples"], 0) << worker;
    examples += worker["examples"].get<uint64_t>();
  }
  EXPECT_EQ(examples, 8u * 3000);
  EXPECT_EQ(report["batch"], 16) << "the batch does not depend on the number of workers";
  EXPECT_LT(report["steps"], 8 * 375);
  EXPECT_EQ(report["updates"], report["steps"]);
  EXPECT_EQ(report["epoch_rows"].size(), 8u);
  EXPECT_THAT(end.output, HasSubstr("4 of 4 done"));
  EXPECT_TRUE(report["problems"].empty()) << report["problems"];
}

TEST_F(GrowthTest, ARunGoesOnIfItsMachineCannotStartAWorker) {
  // The programs of the run. When both workers have started, worker 0 removes their program.
  const std::string programs = daemons_.folder() + "/programs";
  std::filesystem::create_directory(programs);
  const auto path_of = [](const std::string& program) {
    return std::filesystem::absolute(program).string();
  };
  std::filesystem::create_symlink(path_of("server/server"), programs + "/server");
  std::ofstream(programs + "/worker")
      << "#!/bin/sh\nfolder=" << programs << "\ntouch $folder/started-$4\n"
      << "if [ $4 = 0 ]; then\n"
      << "  until [ -e $folder/started-1 ]; do sleep 0.02; done\n  rm $folder/worker\nfi\n"
      << "exec " << path_of("worker/worker") << " \"$@\"\n";
  std::filesystem::permissions(programs + "/worker", std::filesystem::perms::owner_all);
  const std::string report_path = daemons_.folder() + "/report.json";
  daemons_.Start("train", "cli/thinwire",
                 {"train", "--config", daemons_.Write("train.textproto", kGrowing), "--report",
                  report_path, "--grow_to", "3", "--epochs", "3", "--bin_dir", programs});
  ASSERT_TRUE(daemons_.WaitForLog("train", "workers 2 -> 3"));
  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json report = ReadReport(report_path);
  ASSERT_TRUE(report.is_object()) << end.log;
  EXPECT_EQ(report["most_workers"], 2);
  ASSERT_EQ(report["worker_rows"].size(), 2u);
  uint64_t examples = 0;
  for (const auto& worker : report["worker_rows"]) examples += worker["examples"].get<uint64_t>();
  EXPECT_EQ(examples, 3u * 3000);
  EXPECT_EQ(report["batch"], 16);
  ASSERT_EQ(report["problems"].size(), 1u) << report["problems"];
  EXPECT_THAT(report["problems"][0].get<std::string>(), HasSubstr("worker: cannot be run"));
}

}  // namespace
}  // namespace thinwire
