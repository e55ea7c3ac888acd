// Tests durability: checkpoint with real processes: servers are killed and started again, and the
// workers go on by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorkers = 2;
// Each worker has 1000 examples in batches of 10: 100 steps per epoch.
constexpr uint64_t kSteps = 400;

std::string JobText(const std::string& mode, const std::string& clipping,
                    uint32_t checkpoint_seconds) {
  return absl::StrCat(
      "name: \"rollback\" servers: ", kServers, " consistency { ", mode, " workers: ", kWorkers,
      " lease_seconds: 5 } optimization { optimizer: momentum learning_rate: 0.01 ", clipping,
      " } recovery { durability: checkpoint checkpoint_seconds: ", checkpoint_seconds,
      " } task { model: softmax train_examples: 2000 test_examples: 1000 batch_size: 10 epochs: 4 "
      "}");
}

class RollbackTest : public testing::Test {
 protected:
  void StartServer(uint32_t server) {
    daemons_.StartServer(server, job_, addresses_, {"--state_dir", daemons_.folder() + "/state"});
  }
  void StartAll(const std::string& mode, const std::string& clipping = "",
                uint32_t checkpoint_seconds = 1) {
    job_ = JobText(mode, clipping, checkpoint_seconds);
    // Server 0 is the last one, because it needs the addresses of the others.
    for (uint32_t s = kServers; s-- > 0;) StartServer(s);
    for (uint32_t w = 0; w < kWorkers; ++w) {
      daemons_.StartWorker(absl::StrCat("worker", w), job_,
                           {"--worker", absl::StrCat(w), "--addresses",
                            absl::StrJoin(addresses_, ","), "--delay", "0.02s"});
    }
  }
  void Kill(uint32_t server) {
    const std::string name = absl::StrCat("server", server);
    daemons_.Signal(name, SIGKILL);
    daemons_.WaitForEnd(name);
  }
  void KillEachServer() {
    ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(60)).has_value());
    Kill(1);
    StartServer(1);
    ASSERT_TRUE(daemons_.WaitForLog("server1", "restarting in place after a rollback"));
    ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(120)).has_value());
    Kill(0);
    StartServer(0);
  }
  // Expects that both workers run to the end, and returns the sum of their counters.
  WorkerCounters AwaitEnd() {
    WorkerCounters sum;
    double accuracy = 0;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      const std::string name = absl::StrCat("worker", w);
      const auto done = daemons_.WaitForEvent(name, [&](const WorkerEvent& event) {
        if (event.epoch().has_test_accuracy()) accuracy = event.epoch().test_accuracy();
        return event.has_done();
      });
      EXPECT_TRUE(done.has_value());
      if (!done.has_value()) continue;
      const WorkerCounters& counters = done->done().counters();
      sum.set_rollbacks(sum.rollbacks() + counters.rollbacks());
      sum.set_repeated_steps(sum.repeated_steps() + counters.repeated_steps());
      sum.set_rejoins(sum.rejoins() + counters.rejoins());
      const ProcessResult end = daemons_.WaitForEnd(name);
      EXPECT_EQ(end.exit, ExitStatus()) << end.log;
    }
    EXPECT_GT(accuracy, 0.6);
    return sum;
  }

  Daemons daemons_;
  std::string job_;
  std::vector<std::string> addresses_ = std::vector<std::string>(kServers, "127.0.0.1:0");
};

TEST_F(RollbackTest, KilledServersSendAllProcessesBack) {
  StartAll("mode: sync");
  KillEachServer();
  const WorkerCounters counters = AwaitEnd();
  EXPECT_GE(counters.rollbacks(), 2 * kWorkers);
  EXPECT_GT(counters.repeated_steps(), 0u);
  EXPECT_LT(counters.repeated_steps(), 2 * kSteps);
}

// No round closes without the norms of both servers, and only the lead adds them.
TEST_F(RollbackTest, KilledServersSendAClippingJobBack) {
  StartAll("mode: sync", "clip_norm: 0.5");
  KillEachServer();
  EXPECT_GE(AwaitEnd().rollbacks(), 2 * kWorkers);
}

TEST_F(RollbackTest, AnOperatorMakesACheckpointAndSendsTheRunningJobBackToIt) {
  StartAll("mode: sync", "", /*checkpoint_seconds=*/1000);
  const auto checkpoint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "checkpoint");
    arguments.insert(arguments.end(), {"--addresses", absl::StrJoin(addresses_, ",")});
    return daemons_.Run("cli/thinwire", arguments);
  };
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(40)).has_value());
  const ProcessResult saved = checkpoint({"now"});
  ASSERT_EQ(saved.exit, ExitStatus()) << saved.log;
  uint64_t step = 0;
  ASSERT_TRUE(absl::SimpleAtoi(saved.output.substr(saved.output.rfind(' ') + 1), &step))
      << saved.output;
  EXPECT_EQ(saved.output, absl::StrCat("all servers have a checkpoint of step ", step, "\n"));
  EXPECT_GT(step, 40u);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(step + 40)).has_value());

  const ProcessResult refused = checkpoint({"restore", "--step", absl::StrCat(step + 1)});
  EXPECT_EQ(refused.exit.code, static_cast<int>(ExitCode::kConfig));
  EXPECT_THAT(refused.log,
              testing::HasSubstr(absl::StrCat("(expected 0 or ", step, ", got ", step + 1, ")")));
  const ProcessResult restored = checkpoint({"restore", "--step", absl::StrCat(step)});
  ASSERT_EQ(restored.exit, ExitStatus()) << restored.log;
  EXPECT_EQ(restored.output,
            absl::StrCat("all servers went back to step ", step, ", generation 2\n"));
  const WorkerCounters counters = AwaitEnd();
  EXPECT_EQ(counters.rollbacks(), kWorkers);
  EXPECT_GE(counters.repeated_steps(), 40u);
}

TEST_F(RollbackTest, InAsyncAKilledServerContinuesAlone) {
  StartAll("mode: async");
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(60)).has_value());
  Kill(1);
  StartServer(1);
  const WorkerCounters counters = AwaitEnd();
  EXPECT_EQ(counters.rollbacks(), 0u);
  EXPECT_GE(counters.rejoins(), kWorkers);
}

}  // namespace
}  // namespace thinwire
