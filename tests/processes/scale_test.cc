// Tests `thinwire scale`, `mode`, `status` and `drain` on running jobs, with real processes and
// data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/rpc/server_calls.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Worker 0 sleeps 20 ms in every step, so that the run takes long enough.
constexpr char kConfig[] = R"(
  name: "scale"
  servers: 2
  consistency { mode: sync workers: 2 max_workers: 4 }
  optimization { optimizer: momentum learning_rate: 0.01 }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 5 epochs: 4 }
  straggler: "0:20ms"
)";

// All workers are equally slow, so that hardly any worker is late in backup mode.
constexpr char kModesConfig[] = R"(
  name: "modes"
  servers: 2
  consistency { mode: sync workers: 3 }
  optimization { optimizer: sgd learning_rate: 0.01 }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 5 epochs: 5 }
  straggler: "0:20ms" straggler: "1:20ms" straggler: "2:20ms"
)";

// A short run, whose learning rate also fits a single worker.
constexpr char kShortConfig[] = R"(
  name: "drain"
  servers: 2
  consistency { mode: sync workers: 2 }
  optimization { optimizer: sgd learning_rate: 0.01 }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 5 }
  straggler: "0:20ms"
)";

class ScaleTest : public testing::Test {
 protected:
  // Returns the servers' addresses, which the run shows in the line "servers LIST".
  std::string AddressesOf(const std::string& log) const {
    const std::vector<std::string> lines = absl::StrSplit(log, '\n');
    for (const std::string& line : lines) {
      if (line.starts_with("servers ")) return line.substr(8);
    }
    return "";
  }
  ProcessResult Thinwire(const std::vector<std::string>& arguments) {
    return daemons_.Run("cli/thinwire", arguments);
  }
  ProcessResult Scale(const std::string& addresses, int workers) {
    return Thinwire({"scale", "--addresses", addresses, "--workers", absl::StrCat(workers)});
  }

  // Blocks until the lead reports WORKER as live.
  static bool AwaitLive(const std::string& addresses, uint32_t worker) {
    ServerCalls lead({addresses.substr(0, addresses.find(','))});
    const absl::Time deadline = absl::Now() + Daemons::kTimeout;
    while (absl::Now() < deadline) {
      const auto statuses = lead.Status(Daemons::kTimeout);
      if (!statuses.ok()) return false;
      for (const WorkerStatus& status : (*statuses)[0].workers()) {
        if (status.worker() == worker && status.live()) return true;
      }
    }
    return false;
  }

  // Blocks until all servers report MODE. Returns whether they did.
  static bool AwaitMode(const std::string& addresses, const std::string& mode) {
    ServerCalls servers(absl::StrSplit(addresses, ','));
    const absl::Time deadline = absl::Now() + Daemons::kTimeout;
    while (absl::Now() < deadline) {
      const auto statuses = servers.Status(Daemons::kTimeout);
      if (!statuses.ok()) return false;
      size_t count = 0;
      for (const StatusReply& status : *statuses) count += status.mode() == mode ? 1 : 0;
      if (count == statuses->size()) return true;
    }
    return false;
  }

  Daemons daemons_;
};

TEST_F(ScaleTest, ADrainedWorkerLeavesAndItsExamplesAreDealtAnew) {
  const std::string report = daemons_.folder() + "/report.json";
  daemons_.Start(
      "train", "cli/thinwire",
      {"train", "--config", daemons_.Write("train.textproto", kShortConfig), "--report", report});
  ASSERT_TRUE(daemons_.WaitForLog("train", "servers "));
  const std::string addresses = AddressesOf(daemons_.LogOf("train"));
  ASSERT_NE(addresses, "");
  ASSERT_TRUE(AwaitLive(addresses, 0));
  ASSERT_TRUE(AwaitLive(addresses, 1));

  const ProcessResult drained = Thinwire({"drain", "--addresses", addresses, "--worker", "1"});
  EXPECT_EQ(drained.exit, ExitStatus()) << drained.log;
  const ProcessResult status = Thinwire({"status", "--addresses", addresses, "--json"});
  ASSERT_EQ(status.exit, ExitStatus()) << status.log;
  const auto summary = nlohmann::json::parse(status.output, nullptr, false)["summary"];
  EXPECT_EQ(summary["job"], "drain");
  EXPECT_EQ(summary["live_workers"][0], 0) << summary;
  const ProcessResult refused = Thinwire({"drain", "--addresses", addresses, "--worker", "64"});
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78}) << refused.log;
  EXPECT_THAT(refused.log,
              HasSubstr("worker: not a worker of this job (expected below 64, got 64)"));

  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json json = ReadReport(report);
  ASSERT_TRUE(json.is_object()) << end.log;
  ASSERT_EQ(json["worker_rows"].size(), 2u) << end.log;
  const uint64_t remaining = json["worker_rows"][0]["examples"];
  const uint64_t removed = json["worker_rows"][1]["examples"];
  EXPECT_EQ(json["worker_rows"][1]["state"], "done");
  EXPECT_LT(removed, remaining);
  EXPECT_EQ(removed + remaining, 3000u);
  EXPECT_TRUE(json["restarts"].empty()) << json["restarts"];
  EXPECT_TRUE(json["problems"].empty()) << json["problems"];
}

TEST_F(ScaleTest, ADrainedServerExitsInOrderWhileItsStatusIsWatched) {
  const std::string address = daemons_.StartServer("server", "recovery { durability: log }",
                                                   {"--state_dir", daemons_.folder() + "/state"});
  ASSERT_NE(address, "");
  daemons_.Start("status", "cli/thinwire",
                 {"status", "--watch", "--addresses", address + ",127.0.0.1:1"});
  ASSERT_TRUE(daemons_.WaitForLog("status", "error: server 1 (127.0.0.1:1)"));
  const ProcessResult drained = Thinwire({"drain", "--addresses", address, "--server", "0"});
  EXPECT_EQ(drained.exit, ExitStatus()) << drained.log;
  EXPECT_THAT(drained.output, HasSubstr("server 0 stops and exits with code 0"));
  EXPECT_EQ(daemons_.WaitForEnd("server").exit, ExitStatus());

  ASSERT_TRUE(daemons_.WaitForLog("status", absl::StrCat("error: server 0 (", address)));
  daemons_.Signal("status", SIGINT);
  const ProcessResult watched = daemons_.WaitForEnd("status");
  EXPECT_EQ(watched.exit, ExitStatus{.code = 130});
  EXPECT_THAT(watched.output, HasSubstr("servers     1 of 2 answered"));
  EXPECT_EQ(Thinwire({"status", "--addresses", address}).exit, ExitStatus{.code = 69});
}

TEST_F(ScaleTest, ARunningJobGetsMoreAndFewerWorkers) {
  const std::string report = daemons_.folder() + "/report.json";
  daemons_.Start(
      "train", "cli/thinwire",
      {"train", "--config", daemons_.Write("train.textproto", kConfig), "--report", report});
  ASSERT_TRUE(daemons_.WaitForLog("train", "/1200  "));
  const std::string addresses = AddressesOf(daemons_.LogOf("train"));
  ASSERT_NE(addresses, "");

  const ProcessResult refused = Scale(addresses, 5);
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78}) << refused.log;
  EXPECT_THAT(refused.log, HasSubstr("workers: out of range (expected 1 to 4, the value of "
                                     "max_workers, got 5)"));
  const ProcessResult more = Scale(addresses, 4);
  EXPECT_EQ(more.exit, ExitStatus()) << more.log;
  EXPECT_EQ(more.output, "workers 2 -> 4\n");
  ASSERT_TRUE(daemons_.WaitForLog("train", "workers 2 -> 4"));
  ASSERT_TRUE(AwaitLive(addresses, 3));
  const ProcessResult fewer = Scale(addresses, 3);
  EXPECT_EQ(fewer.exit, ExitStatus()) << fewer.log;
  EXPECT_EQ(fewer.output, "workers 4 -> 3\n");
  ASSERT_TRUE(daemons_.WaitForLog("train", "workers 4 -> 3"));

  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json json = ReadReport(report);
  ASSERT_TRUE(json.is_object()) << end.log;
  ASSERT_EQ(json["worker_rows"].size(), 4u) << end.log;
  for (const auto& row : json["worker_rows"]) EXPECT_EQ(row["state"], "done") << row;
  uint64_t examples = 0;
  for (const auto& row : json["worker_rows"]) examples += row["examples"].get<uint64_t>();
  EXPECT_GT(json["worker_rows"][2]["examples"], 0);
  EXPECT_LT(json["worker_rows"][3]["examples"], json["worker_rows"][2]["examples"]);
  EXPECT_TRUE(json["restarts"].empty()) << json["restarts"];
  EXPECT_TRUE(json["problems"].empty()) << json["problems"];
  EXPECT_GT(json["final_test_accuracy"], 0.6);
  // Every example counts once per epoch, because no worker was killed.
  EXPECT_EQ(examples, 3000u * 4);
}

TEST_F(ScaleTest, AModeOfWhichConfigCheckWarnsNeedsForce) {
  daemons_.Start("train", "cli/thinwire",
                 {"train", "--config", daemons_.Write("train.textproto", kShortConfig),
                  "--optimizer", "momentum", "--learning_rate", "0.06"});
  ASSERT_TRUE(daemons_.WaitForLog("train", "servers "));
  const std::string addresses = AddressesOf(daemons_.LogOf("train"));
  ASSERT_TRUE(AwaitLive(addresses, 1));
  const std::string warning = "momentum: may diverge in mode ssp with 2 workers";
  std::vector<std::string> arguments = {"mode", "--addresses", addresses, "--set",
                                        "ssp",  "--slack",     "4"};
  const ProcessResult refused = Thinwire(arguments);
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78}) << refused.log;
  EXPECT_THAT(refused.log, HasSubstr(warning));
  EXPECT_THAT(refused.log, HasSubstr("thinwire mode --force changes the mode nevertheless"));
  arguments.push_back("--force");
  const ProcessResult forced = Thinwire(arguments);
  EXPECT_EQ(forced.exit, ExitStatus()) << forced.log;
  EXPECT_THAT(forced.log, HasSubstr(warning));
  EXPECT_THAT(forced.output, HasSubstr("mode sync -> ssp from step "));
  daemons_.Signal("train", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("train").exit, ExitStatus{.code = 75});
}

TEST_F(ScaleTest, ARunningJobChangesItsMode) {
  const std::string report = daemons_.folder() + "/report.json";
  daemons_.Start(
      "train", "cli/thinwire",
      {"train", "--config", daemons_.Write("train.textproto", kModesConfig), "--report", report});
  ASSERT_TRUE(daemons_.WaitForLog("train", "/1000  "));
  const std::string addresses = AddressesOf(daemons_.LogOf("train"));
  ASSERT_NE(addresses, "");

  const ProcessResult refused =
      Thinwire({"mode", "--addresses", addresses, "--set", "backup", "--backup", "3"});
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78}) << refused.log;
  EXPECT_THAT(refused.log,
              HasSubstr("backup: out of range (expected below 3, the value of workers, got 3)"));
  std::string before = "sync";
  std::map<std::string, uint64_t> begins;  // the first steps of the modes
  const std::vector<std::vector<std::string>> changes = {
      {"async"}, {"backup", "--backup", "1"}, {"ssp", "--slack", "2"}, {"sync"}};
  for (const std::vector<std::string>& change : changes) {
    std::vector<std::string> arguments = {"mode", "--addresses", addresses, "--set"};
    arguments.insert(arguments.end(), change.begin(), change.end());
    const ProcessResult run = Thinwire(arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log;
    std::cout << run.output;
    EXPECT_THAT(run.output, HasSubstr(absl::StrCat("mode ", before, " -> ", change[0], " from ")));
    const size_t step = run.output.find(" from step ");
    ASSERT_NE(step, run.output.npos) << run.output;
    begins[change[0]] = std::stoull(run.output.substr(step + 11));
    ASSERT_TRUE(AwaitMode(addresses, change[0])) << change[0];
    before = change[0];
  }

  const ProcessResult end = daemons_.WaitForEnd("train");
  EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
  const nlohmann::json json = ReadReport(report);
  ASSERT_TRUE(json.is_object()) << end.log;
  uint64_t examples = 0;
  for (const auto& row : json["worker_rows"]) examples += row["examples"].get<uint64_t>();
  std::cout << examples << " examples of 15000\n";
  // No example counts twice. In mode backup, a late worker skips steps: the batch of 5 examples of
  // at most one of the three workers in each step.
  EXPECT_LE(examples, 3000u * 5);
  EXPECT_GE(examples, 3000u * 5 - 5 * (begins["ssp"] - begins["backup"]));
  EXPECT_TRUE(json["restarts"].empty()) << json["restarts"];
  EXPECT_TRUE(json["problems"].empty()) << json["problems"];
  EXPECT_GT(json["final_test_accuracy"], 0.6);
}

}  // namespace
}  // namespace thinwire
