// Tests `thinwire train` with delta pulls in all four modes, with real processes, sockets and data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Softmax regression on a part of Fashion-MNIST. A run takes a few seconds.
constexpr char kConfig[] = R"(
  servers: 2
  consistency { mode: sync workers: 3 lease_seconds: 5 }
  optimization { optimizer: sgd learning_rate: 0.05 }
  compression { push: topk density: 0.02 pull: delta }
  task { model: softmax train_examples: 6000 test_examples: 2000 batch_size: 50 epochs: 2 seed: 7 }
)";

class DeltaModesTest : public testing::Test {
 protected:
  ProcessResult RunTrain(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"train", "--config",
                                          daemons_.Write("train.textproto", kConfig)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return daemons_.Run("cli/thinwire", arguments);
  }

  // Runs `thinwire train` with the job file kConfig and FLAGS. Returns the report.
  nlohmann::json Train(std::vector<std::string> flags) {
    const std::string report = absl::StrCat(daemons_.folder(), "/report", count_++, ".json");
    flags.insert(flags.end(), {"--report", report});
    const ProcessResult run = RunTrain(flags);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log << run.output;
    return ReadReport(report);
  }

  static double PullRatio(const nlohmann::json& report) {
    return report["pull_bytes_raw"].get<double>() / report["pull_bytes_encoded"].get<double>();
  }

  Daemons daemons_;
  int count_ = 0;
};

TEST_F(DeltaModesTest, ExactDeltasAndFullPullsGiveIdenticalModels) {
  const auto whole = Train({"--ordered_fold", "--pull", "fp32"});
  const auto delta = Train({"--ordered_fold"});
  EXPECT_EQ(delta["final_parameters_crc32c"], whole["final_parameters_crc32c"]);
  EXPECT_EQ(delta["final_test_accuracy"], whole["final_test_accuracy"]);
  EXPECT_GT(delta["final_test_accuracy"], 0.65);
  EXPECT_GT(PullRatio(delta), 5);
  EXPECT_EQ(delta["pull"], "delta");
}

TEST_F(DeltaModesTest, LazySlotsKeepDeltasSmallWithMomentum) {
  const auto report = Train({"--optimizer", "momentum", "--learning_rate", "0.01", "--lazy_slots"});
  EXPECT_GT(report["final_test_accuracy"], 0.65);
  EXPECT_GT(PullRatio(report), 5);
}

TEST_F(DeltaModesTest, DenseDeltasTrainWithMomentum) {
  const auto report = Train({"--pull", "delta_fp8_e5m2", "--push", "fp8_e5m2", "--optimizer",
                             "momentum", "--learning_rate", "0.01"});
  EXPECT_GT(report["final_test_accuracy"], 0.70);
  EXPECT_GT(PullRatio(report), 3.8);
  EXPECT_LE(PullRatio(report), 4.0);
}

TEST_F(DeltaModesTest, BackupTrainsWithDeltas) {
  const auto report =
      Train({"--mode", "backup", "--workers", "4", "--backup", "1", "--straggler", "3:100ms"});
  EXPECT_GT(report["late_pushes"], 0);
  EXPECT_GT(report["final_test_accuracy"], 0.65);
  EXPECT_GT(PullRatio(report), 3);
}

TEST_F(DeltaModesTest, SspTrainsWithDeltas) {
  const auto report = Train({"--mode", "ssp", "--slack", "2", "--straggler", "1:20ms"});
  EXPECT_GT(report["final_test_accuracy"], 0.65);
  EXPECT_GT(PullRatio(report), 3);
}

TEST_F(DeltaModesTest, AsyncTrainsWithLossyDeltas) {
  const auto report = Train({"--mode", "async", "--pull", "delta_topk", "--pull_density", "0.1",
                             "--pull_topk_values", "fp16", "--publish_every", "2"});
  EXPECT_GT(report["final_test_accuracy"], 0.60);
  EXPECT_GT(PullRatio(report), 3);
}

TEST_F(DeltaModesTest, GtopkReturnsGiveIdenticalModelsWithDeltasAndFullPulls) {
  std::vector<std::string> flags = {
      "--ordered_fold", "--gradient_selection", "gtopk",  "--selection_density",
      "0.02",           "--selection_rest",     "workers"};
  const auto delta = Train(flags);
  flags.insert(flags.end(), {"--pull", "fp32"});
  const auto whole = Train(flags);
  EXPECT_EQ(delta["final_parameters_crc32c"], whole["final_parameters_crc32c"]);
  EXPECT_GT(delta["final_test_accuracy"], 0.65);
  EXPECT_GT(PullRatio(delta), 20);
}

TEST_F(DeltaModesTest, DivergingCombinationIsRefusedBeforeStart) {
  const ProcessResult run = RunTrain({"--pull", "delta_topk", "--optimizer", "momentum"});
  EXPECT_NE(run.exit, ExitStatus());
  EXPECT_THAT(run.log,
              HasSubstr("--pull: diverges with optimizer: momentum without lazy_slots (expected "
                        "delta_topk with pull_density of at least 0.1"));
}

}  // namespace
}  // namespace thinwire
