// Tests `schedule: noise_scale` with real processes and data: the batch grows during a run, and
// every example of every epoch is trained on once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
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

TEST(GrowthTest, TheBatchGrowsAndALeadThatIsKilledKeepsIt) {
  Daemons daemons;
  setenv("TMPDIR", daemons.folder().c_str(), /*overwrite=*/1);
  const std::string report_path = daemons.folder() + "/report.json";
  const std::string state_dir = daemons.folder() + "/state";
  daemons.Start("train", "cli/thinwire",
                {"train", "--config", daemons.Write("train.textproto", kConfig), "--report",
                 report_path, "--state_dir", state_dir});
  ASSERT_TRUE(daemons.WaitForLog("train", "servers "));
  const std::string log = daemons.LogOf("train");
  const size_t begin = log.find("servers ") + 8;
  ASSERT_TRUE(AwaitGrowth(log.substr(begin, log.find(',', begin) - begin)));
  const pid_t lead = FindProcess({"--server 0 ", state_dir});
  ASSERT_GT(lead, 0);
  kill(lead, SIGKILL);
  const ProcessResult end = daemons.WaitForEnd("train");
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

}  // namespace
}  // namespace thinwire
