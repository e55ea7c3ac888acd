// Tests that `thinwire train` survives the death of its processes and goes on with a stopped run,
// with real processes and data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Each worker has 1000 examples in batches of 10: 100 steps per epoch.
constexpr char kConfig[] = R"(
  name: "recovery"
  servers: 2
  consistency { mode: sync ordered_fold: true workers: 3 lease_seconds: 2 }
  optimization { optimizer: momentum learning_rate: 0.01 }
  recovery { durability: log checkpoint_seconds: 3 }
  task { model: softmax train_examples: 3000 test_examples: 1000 batch_size: 10 epochs: 6 }
)";
constexpr int kSteps = 600;

class RecoveryTest : public testing::Test {
 protected:
  // The job file in the command line of each process is in this folder.
  void SetUp() override { setenv("TMPDIR", daemons_.folder().c_str(), /*overwrite=*/1); }

  // Starts `thinwire train` with the name RUN. Each of its steps takes at least 20 ms if SLOW.
  void Train(const std::string& run, bool slow, std::vector<std::string> flags = {}) {
    std::vector<std::string> arguments = {
        "train",    "--config",    daemons_.Write("train.textproto", kConfig),
        "--report", ReportOf(run), "--state_dir",
        state_dir_};
    if (slow) arguments.insert(arguments.end(), {"--straggler", "0:20ms"});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    daemons_.Start(run, "cli/thinwire", arguments);
  }

  // Expects that RUN succeeds, and returns its report.
  nlohmann::json ReportAtTheEnd(const std::string& run) {
    const ProcessResult end = daemons_.WaitForEnd(run);
    EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
    return ReadReport(ReportOf(run));
  }

  // Blocks until RUN shows a progress line with a step.
  bool WaitForSteps(const std::string& run) {
    return daemons_.WaitForLog(run, absl::StrCat("/", kSteps, "  "));
  }

  // Kills a server of the run and blocks until RUN has started it again.
  void KillServer(const std::string& run, int server) {
    const pid_t pid = FindProcess({absl::StrCat("--server ", server, " "), state_dir_});
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    EXPECT_TRUE(daemons_.WaitForLog(
        run, absl::StrCat("server ", server, " was killed by signal 9; started again (")));
  }

  std::string ReportOf(const std::string& run) const {
    return absl::StrCat(daemons_.folder(), "/", run, ".json");
  }

  Daemons daemons_;
  std::string state_dir_ = daemons_.folder() + "/state";
};

TEST_F(RecoveryTest, KilledServersDoNotChangeTheFinalParameters) {
  Train("undisturbed", /*slow=*/false);
  const auto expected = ReportAtTheEnd("undisturbed");
  EXPECT_EQ(expected["steps"], kSteps);

  state_dir_ = daemons_.folder() + "/second_state";
  Train("killed", /*slow=*/true);
  ASSERT_TRUE(WaitForSteps("killed"));
  KillServer("killed", 1);
  KillServer("killed", 0);
  const auto report = ReportAtTheEnd("killed");
  EXPECT_EQ(report["final_parameters_crc32c"], expected["final_parameters_crc32c"]);
  EXPECT_EQ(report["final_test_accuracy"], expected["final_test_accuracy"]);
  EXPECT_EQ(report["steps"], kSteps);
  ASSERT_EQ(report["restarts"].size(), 2u);
  EXPECT_EQ(report["restarts"][0]["process"], "server 1");
  EXPECT_EQ(report["restarts"][1]["process"], "server 0");
  EXPECT_EQ(report["rejoins"], 2 * 3) << "each worker joined each killed server again";
  EXPECT_TRUE(report["problems"].empty()) << report["problems"];
}

TEST_F(RecoveryTest, AKilledWorkerIsStartedAgainAndFinishes) {
  Train("killed", /*slow=*/true);
  ASSERT_TRUE(WaitForSteps("killed"));
  const pid_t worker = FindProcess({"--worker 2 ", daemons_.folder()});
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  EXPECT_TRUE(daemons_.WaitForLog("killed", "worker 2 was killed by signal 9; started again ("));
  const auto report = ReportAtTheEnd("killed");
  // More steps if the worker was missing for longer than its lease: two workers then share its
  // examples for a while.
  EXPECT_GE(report["steps"], kSteps);
  EXPECT_EQ(report["worker_rows"][2]["state"], "done");
  EXPECT_EQ(report["restarts"].size(), 1u);
  EXPECT_GT(report["final_test_accuracy"], 0.6);
}

TEST_F(RecoveryTest, AStoppedRunGoesOnWhereItStopped) {
  Train("first", /*slow=*/true);
  ASSERT_TRUE(WaitForSteps("first"));
  daemons_.Signal("first", SIGTERM);
  const ProcessResult stopped = daemons_.WaitForEnd("first");
  EXPECT_EQ(stopped.exit, ExitStatus{.code = 75}) << stopped.log;
  EXPECT_THAT(stopped.log, HasSubstr("add --resume"));

  Train("refused", /*slow=*/false);
  const ProcessResult refused = daemons_.WaitForEnd("refused");
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78});
  EXPECT_THAT(refused.log, HasSubstr("--state_dir: holds a run of job recovery"));

  Train("second", /*slow=*/false, {"--resume"});
  const auto report = ReportAtTheEnd("second");
  EXPECT_GT(report["resumed_step"], 0);
  EXPECT_LT(report["resumed_step"], kSteps);
  EXPECT_EQ(report["steps"], kSteps);
  EXPECT_GT(report["final_test_accuracy"], 0.6);

  Train("third", /*slow=*/false, {"--resume"});
  const auto finished = ReportAtTheEnd("third");
  EXPECT_GE(finished["resumed_step"], kSteps);
  EXPECT_EQ(finished["final_parameters_crc32c"], report["final_parameters_crc32c"]);
  EXPECT_EQ(finished["final_test_accuracy"], report["final_test_accuracy"]);
}

TEST_F(RecoveryTest, AStoppedRunEndsWithTheBitsOfAnUndisturbedOne) {
  const std::vector<std::string> kJobs[] = {
      {"--durability", "checkpoint", "--push", "topk", "--density", "0.01", "--pull", "delta",
       "--optimizer", "sgd"},
      {"--durability", "log", "--push", "fp8_e5m2", "--pull", "bf16"},
      {"--durability", "checkpoint", "--push", "topk", "--density", "0.01", "--pull", "delta",
       "--optimizer", "sgd", "--momentum_correction", "--correction_momentum", "0.5"},
      {"--durability", "checkpoint", "--push", "fp8_e5m2", "--pull", "bf16", "--local_steps", "2",
       "--local_optimizer", "momentum", "--local_learning_rate", "0.01", "--optimizer", "sgd",
       "--learning_rate", "1", "--epochs", "12"},
  };
  for (size_t i = 0; i < std::size(kJobs); ++i) {
    SCOPED_TRACE(absl::StrJoin(kJobs[i], " "));
    state_dir_ = absl::StrCat(daemons_.folder(), "/undisturbed_state-", i);
    const std::string undisturbed = absl::StrCat("undisturbed-", i);
    Train(undisturbed, /*slow=*/false, kJobs[i]);
    const auto expected = ReportAtTheEnd(undisturbed);

    state_dir_ = absl::StrCat(daemons_.folder(), "/stopped_state-", i);
    std::vector<std::string> flags = kJobs[i];
    std::string logs;
    for (const int signal : {SIGTERM, SIGINT}) {
      const std::string run = absl::StrCat("stopped-", i, "-", signal);
      Train(run, /*slow=*/true, flags);
      ASSERT_TRUE(WaitForSteps(run));
      daemons_.Signal(run, signal);
      const ProcessResult end = daemons_.WaitForEnd(run);
      EXPECT_EQ(end.exit, ExitStatus{.code = signal == SIGTERM ? 75 : 130}) << end.log;
      logs += end.log;
      if (signal == SIGTERM) flags.push_back("--resume");
    }
    const std::string last = absl::StrCat("last-", i);
    Train(last, /*slow=*/false, flags);
    const auto report = ReportAtTheEnd(last);
    EXPECT_GT(report["resumed_step"], 0);
    EXPECT_LT(report["resumed_step"], kSteps);
    EXPECT_EQ(report["final_parameters_crc32c"], expected["final_parameters_crc32c"]) << logs;
    EXPECT_EQ(report["final_test_accuracy"], expected["final_test_accuracy"]);
    EXPECT_EQ(report["dropped_residuals"], 0);
  }
}

TEST_F(RecoveryTest, AServerWithAFullDiskExitsAndGoesOnWhenThereIsSpace) {
  constexpr char kJob[] = R"(
    name: "full-disk"
    consistency { workers: 1 }
    recovery { durability: log }
    task { model: softmax train_examples: 300 test_examples: 100 batch_size: 10 }
  )";
  const std::vector<std::string> flags = {"--state_dir", state_dir_};
  std::vector<std::string> addresses = {"127.0.0.1:0"};
  // A write above the limit then fails, instead of ending the server by a signal.
  signal(SIGXFSZ, SIG_IGN);
  daemons_.StartServer(0, kJob, addresses, flags);
  signal(SIGXFSZ, SIG_DFL);
  const rlimit limit = {.rlim_cur = 200, .rlim_max = 200};  // less than the first Join needs
  const pid_t server = FindProcess({"--server 0 ", state_dir_});
  ASSERT_GT(server, 0);
  ASSERT_EQ(prlimit(server, RLIMIT_FSIZE, &limit, nullptr), 0);

  daemons_.StartWorker("worker", kJob, {"--worker", "0", "--addresses", addresses[0]});
  const ProcessResult end = daemons_.WaitForEnd("server0");
  EXPECT_EQ(end.exit, (ExitStatus{.code = static_cast<int>(ExitCode::kIo)})) << end.log;
  EXPECT_THAT(end.log, HasSubstr("File too large: stopping"));
  EXPECT_THAT(end.log, Not(HasSubstr("this process ends now")));

  daemons_.StartServer(0, kJob, addresses, flags);
  EXPECT_TRUE(daemons_.WaitForEvent("worker", IsEvent(WorkerEvent::kDone)).has_value());
  EXPECT_EQ(daemons_.WaitForEnd("worker").exit, ExitStatus());
}

}  // namespace
}  // namespace thinwire
