// Tests `thinwire train` in all four modes and with all staleness policies, with real processes,
// sockets and data.
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
  optimization { optimizer: momentum learning_rate: 0.01 }
  compression { push: fp8_e5m2 pull: bf16 }
  task { model: softmax train_examples: 6000 test_examples: 2000 batch_size: 50 epochs: 2 seed: 7 }
)";

class ModesTest : public testing::Test {
 protected:
  // Runs `thinwire train` with the job file kConfig and FLAGS. Returns the report.
  nlohmann::json Train(std::vector<std::string> flags) {
    const std::string report = absl::StrCat(daemons_.folder(), "/report", count_++, ".json");
    std::vector<std::string> arguments = {
        "train", "--config", daemons_.Write("train.textproto", kConfig), "--report", report};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log << run.output;
    return ReadReport(report);
  }

  Daemons daemons_;
  int count_ = 0;
};

TEST_F(ModesTest, SyncTrains) {
  const auto report = Train({});
  EXPECT_EQ(report["mode"], "sync");
  EXPECT_EQ(report["workers"], 3);
  EXPECT_EQ(report["servers"], 2);
  EXPECT_EQ(report["push"], "fp8_e5m2");
  EXPECT_EQ(report["pull"], "bf16");
  EXPECT_EQ(report["epochs"], 2);
  EXPECT_EQ(report["steps"], 2 * 40);
  EXPECT_GT(report["final_test_accuracy"], 0.70);
  EXPECT_GT(report["final_train_loss"], 0.0);
  EXPECT_GT(report["seconds"], 0.0);
  EXPECT_GT(report["median_step_seconds"], 0.0);
  // In sync mode, every round waits for all workers. Therefore no push is late and no gradient is
  // stale.
  EXPECT_EQ(report["late_pushes"], 0);
  EXPECT_EQ(report["staleness"]["max"], 0);
  // Each of the 3 workers pushes 7850 values of 4 bytes in each of the 80 steps.
  EXPECT_EQ(report["push_bytes_raw"], 7850ull * 4 * 3 * 80);
  const double push_ratio =
      report["push_bytes_raw"].get<double>() / report["push_bytes_encoded"].get<double>();
  EXPECT_GT(push_ratio, 3.9);
  EXPECT_LE(push_ratio, 4.0);
  const double pull_ratio =
      report["pull_bytes_raw"].get<double>() / report["pull_bytes_encoded"].get<double>();
  EXPECT_GT(pull_ratio, 1.9);
  EXPECT_LE(pull_ratio, 2.0);
}

TEST_F(ModesTest, OrderedFoldGivesIdenticalRuns) {
  const auto first = Train({"--ordered_fold"});
  const auto second = Train({"--ordered_fold"});
  EXPECT_EQ(first["final_parameters_crc32c"], second["final_parameters_crc32c"]);
  EXPECT_EQ(first["final_test_accuracy"], second["final_test_accuracy"]);
  const auto other = Train({"--ordered_fold", "--seed", "8"});
  EXPECT_NE(first["final_parameters_crc32c"], other["final_parameters_crc32c"]);
}

TEST_F(ModesTest, TheNormOfTheAveragedGradientIsClipped) {
  const auto report = Train({"--ordered_fold", "--clip_norm", "1"});
  EXPECT_GT(report["clipped_updates"], 0);
  EXPECT_LE(report["clipped_updates"], 2 * 40);
  EXPECT_GT(report["final_test_accuracy"], 0.70);
  const auto again = Train({"--ordered_fold", "--clip_norm", "1"});
  EXPECT_EQ(again["final_parameters_crc32c"], report["final_parameters_crc32c"]);
  EXPECT_EQ(again["clipped_updates"], report["clipped_updates"]);
}

TEST_F(ModesTest, BackupDoesNotWaitForAStraggler) {
  const auto report =
      Train({"--mode", "backup", "--workers", "4", "--backup", "1", "--straggler", "3:100ms"});
  EXPECT_GT(report["late_pushes"], 0);
  EXPECT_GT(report["final_test_accuracy"], 0.70);
}

TEST_F(ModesTest, AStragglerBecomesTheBackupWorkerAtRunTime) {
  const auto report = Train({"--mode", "backup", "--workers", "4", "--backup", "0", "--auto_backup",
                             "--straggler", "3:200ms"});
  EXPECT_EQ(report["final_rule"]["mode"], "backup");
  EXPECT_GE(report["final_rule"]["backup"], 1);
  EXPECT_GT(report["late_pushes"], 0);
  EXPECT_GT(report["final_test_accuracy"], 0.70);
}

TEST_F(ModesTest, SspStalenessStaysWithinItsBound) {
  const auto report =
      Train({"--mode", "ssp", "--slack", "2", "--momentum", "0.5", "--straggler", "1:20ms"});
  EXPECT_GT(report["final_test_accuracy"], 0.70);
  EXPECT_EQ(report["late_pushes"], 0);
  // Staleness is the number of updates between a worker's read and its push. In that time, each of
  // the two other workers can advance from 2 steps (the slack) behind the worker to 2 steps ahead
  // of it, and push in each of these 2 * 2 + 1 steps.
  EXPECT_GT(report["staleness"]["max"], 0);
  EXPECT_LE(report["staleness"]["max"], 2 * (2 * 2 + 1));
}

TEST_F(ModesTest, AsyncTrainsWithAStraggler) {
  const auto report = Train({"--mode", "async", "--fold_every", "2", "--momentum", "0.5",
                             "--straggler", "1:20ms", "--push", "topk", "--density", "0.05"});
  EXPECT_GT(report["final_test_accuracy"], 0.65);
  EXPECT_EQ(report["late_pushes"], 0);
  EXPECT_LT(report["push_bytes_encoded"].get<double>(),
            0.1 * report["push_bytes_raw"].get<double>());
}

// In the tests below, worker 1 is slower than the others, so that its gradients are stale.

TEST_F(ModesTest, DropRefusesStaleGradients) {
  const auto report = Train({"--mode", "async", "--momentum", "0.5", "--staleness_policy", "drop",
                             "--staleness_bound", "8", "--straggler", "1:50ms"});
  EXPECT_GT(report["dropped_pushes"], 0);
  EXPECT_EQ(report["refused_pushes"], report["dropped_pushes"]);
  EXPECT_LE(report["staleness"]["max"], 8);
  EXPECT_GT(report["final_test_accuracy"], 0.65);
}

TEST_F(ModesTest, ScaleTrainsWithAStraggler) {
  const auto report = Train({"--mode", "async", "--momentum", "0.5", "--staleness_policy", "scale",
                             "--straggler", "1:50ms"});
  EXPECT_EQ(report["refused_pushes"], 0);
  EXPECT_GT(report["staleness"]["max"], 8);
  EXPECT_GT(report["final_test_accuracy"], 0.60);
}

TEST_F(ModesTest, DcasgdCompensatesStaleGradients) {
  const auto report =
      Train({"--mode", "ssp", "--slack", "2", "--momentum", "0.5", "--pull", "delta_fp8_e5m2",
             "--staleness_policy", "dcasgd", "--straggler", "1:20ms"});
  EXPECT_GT(report["staleness"]["max"], 0);
  // The version log leads to the parameters of most gradients.
  EXPECT_LT(report["uncompensated_pushes"].get<double>(),
            0.5 * report["accepted_pushes"].get<double>());
  EXPECT_GT(report["final_test_accuracy"], 0.65);
}

}  // namespace
}  // namespace thinwire
