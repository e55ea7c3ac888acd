// Trains with streaming local steps (docs/streaming.md) with real processes: in all modes, and when
// servers and workers are killed or stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each worker has 1000 examples in batches of 10: 25 steps of 4 local steps per epoch.
constexpr char kConfig[] = R"(
  name: "streaming"
  servers: 2
  consistency { mode: sync workers: 2 lease_seconds: 2 }
  optimization { optimizer: nesterov learning_rate: 0.7 momentum: 0.5 }
  compression { push: fp8_e5m2 pull: bf16 }
  task {
    model: softmax train_examples: 2000 test_examples: 1000 batch_size: 10 epochs: 4
    local_steps: 4 local_learning_rate: 0.01 fragments: 2 overlap_steps: 1
  }
)";
constexpr int kSteps = 100;

class StreamingTest : public testing::Test {
 protected:
  // The job file in the command line of each process is in this folder.
  void SetUp() override { setenv("TMPDIR", daemons_.folder().c_str(), /*overwrite=*/1); }

  // Starts `thinwire train` with the name RUN.
  void Start(const std::string& run, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {
        "train", "--config", daemons_.Write("train.textproto", kConfig), "--report", ReportOf(run)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    daemons_.Start(run, "cli/thinwire", arguments);
  }
  // Expects that RUN succeeds, and returns its report.
  nlohmann::json ReportAtTheEnd(const std::string& run) {
    const ProcessResult end = daemons_.WaitForEnd(run);
    EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
    return ReadReport(ReportOf(run));
  }
  nlohmann::json Train(const std::string& run, const std::vector<std::string>& flags) {
    Start(run, flags);
    return ReportAtTheEnd(run);
  }
  // Starts RUN with FLAGS and a state folder, slowly, and blocks until it has taken some steps.
  void StartSlowly(const std::string& run, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--straggler", "0:60ms"});
    Start(run, flags);
    ASSERT_TRUE(daemons_.WaitForLog(run, absl::StrCat("/", kSteps, "  ")));
  }
  // Kills the process of RUN whose command line has TEXT, and blocks until it is started again.
  void Kill(const std::string& run, const std::string& text, const std::string& name) {
    const pid_t pid = FindProcess({text, daemons_.folder()});
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    EXPECT_TRUE(daemons_.WaitForLog(run, name + " was killed by signal 9; started again ("));
  }
  std::vector<std::string> StateFlags(const std::string& run, const std::string& durability) const {
    return {"--ordered_fold",
            "--durability",
            durability,
            "--checkpoint_seconds",
            "1",
            "--state_dir",
            absl::StrCat(daemons_.folder(), "/state-", run)};
  }
  std::string ReportOf(const std::string& run) const {
    return absl::StrCat(daemons_.folder(), "/", run, ".json");
  }

  Daemons daemons_;
};

TEST_F(StreamingTest, FragmentsPushAsManyBytesAsLocalSteps) {
  const auto plain = Train("plain", {"--ordered_fold", "--fragments", "1", "--overlap_steps", "0"});
  const auto streaming = Train("streaming", {"--ordered_fold"});
  EXPECT_EQ(streaming["steps"], kSteps);
  for (const char* field : {"steps", "push_bytes_raw", "push_bytes_encoded"}) {
    EXPECT_EQ(streaming[field], plain[field]) << field;
  }
  EXPECT_NE(streaming["final_parameters_crc32c"], plain["final_parameters_crc32c"]);
  EXPECT_GT(streaming["final_test_accuracy"], 0.7);
  const auto again = Train("again", {"--ordered_fold"});
  EXPECT_EQ(again["final_parameters_crc32c"], streaming["final_parameters_crc32c"]);
}

TEST_F(StreamingTest, FragmentsTrainInAllModes) {
  const std::vector<std::string> kModes[] = {
      {"--mode", "sync", "--push", "topk", "--density", "0.05", "--pull", "delta_fp8_e5m2"},
      {"--mode", "backup", "--workers", "3", "--backup", "1", "--straggler", "2:20ms"},
      {"--mode", "ssp", "--slack", "2", "--learning_rate", "0.35"},
      {"--mode", "async", "--learning_rate", "0.35", "--straggler", "1:5ms"}};
  for (const std::vector<std::string>& mode : kModes) {
    for (const std::string overlap : {"0", "1"}) {
      std::vector<std::string> flags = mode;
      flags.insert(flags.end(), {"--fragments", "2", "--overlap_steps", overlap});
      SCOPED_TRACE(absl::StrJoin(flags, " "));
      const auto report = Train(absl::StrCat(mode[1], overlap), flags);
      EXPECT_THAT(report["problems"], IsEmpty());
      EXPECT_LT(report["epoch_rows"][3]["train_loss"], report["epoch_rows"][0]["train_loss"]);
      EXPECT_GT(report["final_test_accuracy"], 0.6);
    }
  }
}

TEST_F(StreamingTest, KilledServersWithALogDoNotChangeTheFinalParameters) {
  const auto expected = Train("undisturbed", StateFlags("undisturbed", "log"));
  StartSlowly("killed", StateFlags("killed", "log"));
  Kill("killed", "--server 1 ", "server 1");
  Kill("killed", "--server 0 ", "server 0");
  const auto report = ReportAtTheEnd("killed");
  EXPECT_EQ(report["final_parameters_crc32c"], expected["final_parameters_crc32c"]);
  EXPECT_EQ(report["final_test_accuracy"], expected["final_test_accuracy"]);
  EXPECT_EQ(report["restarts"].size(), 2u);
}

TEST_F(StreamingTest, AKilledServerWithCheckpointsSendsTheWorkersBack) {
  StartSlowly("killed", StateFlags("killed", "checkpoint"));
  Kill("killed", "--server 1 ", "server 1");
  const auto report = ReportAtTheEnd("killed");
  EXPECT_GE(report["rollbacks"], 2) << "each worker went back";
  EXPECT_GT(report["final_test_accuracy"], 0.7);
}

TEST_F(StreamingTest, AKilledWorkerIsStartedAgainAndFinishes) {
  StartSlowly("killed", StateFlags("killed", "log"));
  Kill("killed", "--worker 1 ", "worker 1");
  const auto report = ReportAtTheEnd("killed");
  EXPECT_GE(report["steps"], kSteps);
  EXPECT_EQ(report["worker_rows"][1]["state"], "done");
  EXPECT_GT(report["final_test_accuracy"], 0.7);
}

TEST_F(StreamingTest, AStoppedRunEndsWithTheBitsOfAnUndisturbedOne) {
  const auto expected = Train("undisturbed", StateFlags("undisturbed", "checkpoint"));
  std::vector<std::string> flags = StateFlags("stopped", "checkpoint");
  StartSlowly("stopped", flags);
  daemons_.Signal("stopped", SIGTERM);
  const ProcessResult end = daemons_.WaitForEnd("stopped");
  EXPECT_EQ(end.exit, ExitStatus{.code = 75}) << end.log;
  flags.push_back("--resume");
  const auto report = Train("resumed", flags);
  EXPECT_GT(report["resumed_step"], 0);
  EXPECT_LT(report["resumed_step"], kSteps);
  EXPECT_EQ(report["final_parameters_crc32c"], expected["final_parameters_crc32c"]) << end.log;
}

TEST_F(StreamingTest, MoreFragmentsThanShardsAreRefused) {
  constexpr char kJob[] =
      "consistency { workers: 1 } task { model: softmax local_steps: 50 fragments: 50 }";
  std::vector<std::string> addresses = {"127.0.0.1:0"};
  daemons_.StartServer(0, kJob, addresses);
  daemons_.StartWorker("worker", kJob, {"--worker", "0", "--addresses", addresses[0]});
  const ProcessResult end = daemons_.WaitForEnd("worker");
  EXPECT_EQ(end.exit, ExitStatus{.code = 78}) << end.log;
  EXPECT_THAT(end.log, HasSubstr("fragments: out of range (expected 1 to "));
}

}  // namespace
}  // namespace thinwire
