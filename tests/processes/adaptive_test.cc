// Tests push: adaptive with real processes and data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Each worker has 1000 examples in batches of 10: 100 steps. The second candidate sends only values
// above 10^6, so it never learns anything.
constexpr char kConfig[] = R"(
  name: "adaptive"
  servers: 2
  consistency { mode: sync ordered_fold: true workers: 2 lease_seconds: 5 }
  optimization { optimizer: momentum learning_rate: 0.01 }
  task { model: softmax train_examples: 2000 test_examples: 1000 batch_size: 10 epochs: 1 }
)";
const std::vector<std::string> kAdaptive = {"--push",
                                            "adaptive",
                                            "--adaptive_candidates",
                                            "onebit",
                                            "--adaptive_candidates",
                                            "twobit",
                                            "--twobit_threshold",
                                            "1000000",
                                            "--adaptive_speculate_steps",
                                            "16",
                                            "--adaptive_continue_steps",
                                            "30"};

class AdaptiveTest : public testing::Test {
 protected:
  void SetUp() override { setenv("TMPDIR", daemons_.folder().c_str(), /*overwrite=*/1); }

  std::vector<std::string> Arguments(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {"train", "--config", config_, "--report", ReportPath()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  // Trains, expects success, and returns the report.
  nlohmann::json Report(const std::vector<std::string>& flags) {
    const ProcessResult end = daemons_.Run("cli/thinwire", Arguments(flags));
    EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
    output_ = end.output;
    return ReadReport(ReportPath());
  }
  std::string ReportPath() const { return daemons_.folder() + "/report.json"; }

  Daemons daemons_;
  const std::string config_ = daemons_.Write("train.textproto", kConfig);
  std::string output_;
};

TEST_F(AdaptiveTest, DiscardedTrialsChangeNothing) {
  const auto adaptive = Report(kAdaptive);
  ASSERT_EQ(adaptive["worker_rows"].size(), 2u);
  for (const auto& row : adaptive["worker_rows"]) {
    EXPECT_EQ(row["steps"], 100);
    EXPECT_GE(row["repeated_steps"], 3 * 16) << "two trials of twobit and the first one of onebit";
  }
  ASSERT_EQ(adaptive["precision_decisions"].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const auto& decision = adaptive["precision_decisions"][i];
    EXPECT_EQ(decision["step"], 46 * i);
    EXPECT_EQ(decision["next_step"], i == 0 ? 46 : 100);
    EXPECT_EQ(decision["chosen"], "onebit");
    EXPECT_EQ(decision["candidates"].size(), 2u);
  }
  EXPECT_THAT(output_, HasSubstr("decision at 46"));
  // Two returns at step 0 and two at step 46: to the trial of twobit, and back to onebit.
  EXPECT_EQ(adaptive["rollbacks"], 2 * 4);
  EXPECT_EQ(adaptive["dropped_residuals"], 0);
  // The residuals of onebit and the momenta are part of the snapshots.
  const auto fixed = Report({"--push", "onebit", "--durability", "checkpoint"});
  EXPECT_EQ(adaptive["final_parameters_crc32c"], fixed["final_parameters_crc32c"]);
  EXPECT_EQ(adaptive["final_test_accuracy"], fixed["final_test_accuracy"]);
}

TEST_F(AdaptiveTest, LayersHaveTheirOwnCodecsAndABadOneIsRemoved) {
  // Each worker has 560 examples: 56 steps, with decisions at 0, 16 and 32.
  const auto report =
      Report({"--model", "cnn", "--train_examples", "1120", "--test_examples", "100",
              "--error_feedback", "false", "--push", "adaptive", "--adaptive_candidates", "fp32",
              "--adaptive_candidates", "fp8_e5m2", "--adaptive_candidates", "table_1",
              "--adaptive_speculate_steps", "8", "--adaptive_continue_steps", "8",
              "--adaptive_prune", "--adaptive_per_layer"});
  const auto& decisions = report["precision_decisions"];
  ASSERT_GE(decisions.size(), 3u);
  EXPECT_EQ(decisions[0]["layers"], "all");
  EXPECT_EQ(decisions[1]["layers"], "matrices");
  EXPECT_EQ(decisions[2]["layers"], "convolutions");
  ASSERT_EQ(decisions[0]["candidates"].size(), 3u);
  EXPECT_EQ(decisions[0]["candidates"][0]["encoding_error"], 0);
  EXPECT_GT(decisions[0]["candidates"][1]["encoding_error"], 0);
  EXPECT_LT(decisions[0]["candidates"][1]["encoding_error"], 0.1);
  EXPECT_GT(decisions[0]["candidates"][2]["encoding_error"], 1);
  EXPECT_TRUE(decisions[0]["candidates"][2]["predicted_accuracy"].is_null());
  EXPECT_EQ(decisions[1]["candidates"].size(), 2u) << "table_1 is removed";
  EXPECT_THAT(output_, HasSubstr("table_1 removed (encoding error "));
  EXPECT_THAT(output_, HasSubstr(" for convolutions up to step "));
}

// Servers and workers of their own, of which the tests kill some.
class AdaptiveFailureTest : public testing::Test {
 protected:
  void StartServer(uint32_t server) {
    daemons_.StartServer(server, job_, addresses_, {"--state_dir", daemons_.folder() + "/state"});
  }
  void StartWorker(uint32_t worker) {
    daemons_.StartWorker(
        absl::StrCat("worker", worker), job_,
        {"--worker", absl::StrCat(worker), "--addresses", absl::StrJoin(addresses_, ","),
         "--state_dir", daemons_.folder() + "/state", "--delay", "0.03s"});
  }
  // Kills the program NAME and returns its log.
  std::string Kill(const std::string& name) {
    daemons_.Signal(name, SIGKILL);
    return daemons_.WaitForEnd(name).log;
  }

  Daemons daemons_;
  const std::string job_ = absl::StrCat(
      kConfig,
      "recovery { durability: checkpoint } compression { push: adaptive twobit_threshold: 1000000 "
      "adaptive_candidates: onebit adaptive_candidates: twobit "
      "adaptive_speculate_steps: 16 adaptive_continue_steps: 30 }");
  std::vector<std::string> addresses_ = std::vector<std::string>(2, "127.0.0.1:0");
};

TEST_F(AdaptiveFailureTest, AnEvaluatorAndALeadThatDieInTrialsAreReplaced) {
  // Server 0 is the last one, because it needs the addresses of the others.
  StartServer(1);
  StartServer(0);
  for (uint32_t w = 0; w < 2; ++w) StartWorker(w);
  ASSERT_TRUE(daemons_.WaitForLog("worker1", "pushed as twobit, in a trial from step 0"));
  Kill("worker0");
  StartWorker(0);
  // In the second round, the codec of the first decision is tried last.
  ASSERT_TRUE(daemons_.WaitForLog("worker1", "pushed as onebit, in a trial from step 46"));
  EXPECT_THAT(Kill("server0"), HasSubstr("adaptive precision: onebit from step 0 to 46, "));
  StartServer(0);
  for (const std::string name : {"worker0", "worker1"}) {
    const ProcessResult end = daemons_.WaitForEnd(name);
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
  }
  EXPECT_THAT(daemons_.LogOf("server0"),
              HasSubstr("adaptive precision: onebit from step 46 to 100, "));
  const std::vector<std::string> parts =
      absl::StrSplit(daemons_.LogOf("worker1"), "pushed as twobit, in a trial from step 46");
  EXPECT_EQ(parts.size(), 2u) << "only the present trial is repeated";
}

}  // namespace
}  // namespace thinwire
