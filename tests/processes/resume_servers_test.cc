// Tests that a stopped run goes on with another number of servers, and from imported checkpoints
// and models, with real processes and data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Each worker has 1000 examples in batches of 10: 100 steps per epoch.
constexpr char kConfig[] = R"(
  name: "resume"
  servers: 2
  consistency { mode: sync ordered_fold: true workers: 2 }
  optimization { optimizer: momentum learning_rate: 0.01 }
  recovery { durability: checkpoint }
  task { model: softmax train_examples: 2000 test_examples: 1000 batch_size: 10 epochs: 1 }
)";

class ResumeServersTest : public testing::Test {
 protected:
  void SetUp() override { setenv("TMPDIR", daemons_.folder().c_str(), /*overwrite=*/1); }

  // Runs `thinwire train` in the state directory DIR.
  ProcessResult Train(const std::string& dir, std::vector<std::string> flags = {}) {
    std::vector<std::string> arguments = {"train",      "--config",    config_, "--report",
                                          ReportPath(), "--state_dir", dir};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return daemons_.Run("cli/thinwire", arguments);
  }

  // Trains in DIR, expects success, and returns the report.
  nlohmann::json Report(const std::string& dir, const std::vector<std::string>& flags = {}) {
    const ProcessResult end = Train(dir, flags);
    EXPECT_EQ(end.exit, ExitStatus()) << end.log << end.output;
    last_log_ = end.log;
    return ReadReport(ReportPath());
  }

  ProcessResult Import(const std::string& source, const std::string& dir,
                       const std::string& config) {
    return daemons_.Run("cli/thinwire", {"checkpoint", "import", "--config", config, "--from",
                                         source, "--state_dir", dir});
  }

  std::string Path(const std::string& name) const { return daemons_.folder() + "/" + name; }
  std::string ReportPath() const { return Path("report.json"); }

  Daemons daemons_;
  const std::string config_ = daemons_.Write("train.textproto", kConfig);
  std::string last_log_;
};

TEST_F(ResumeServersTest, ARunGoesOnWithMoreAndFewerServers) {
  const std::string dir = Path("state");
  const auto first = Report(dir);
  EXPECT_EQ(first["steps"], 100);

  const auto second = Report(dir, {"--resume", "--servers", "3", "--epochs", "2"});
  EXPECT_THAT(last_log_, HasSubstr("converted the state of 2 servers to 3 servers at step 100; the "
                                   "old folders are "));
  EXPECT_EQ(second["resumed_step"], 100);
  EXPECT_EQ(second["steps"], 200);
  EXPECT_GT(second["final_test_accuracy"], first["final_test_accuracy"].get<double>() - 0.02);

  const auto third =
      Report(dir, {"--resume", "--servers", "1", "--shard_size", "5000", "--epochs", "3"});
  EXPECT_THAT(last_log_, HasSubstr("converted the state of 3 servers to 1 server at step 200"));
  EXPECT_EQ(third["resumed_step"], 200);
  EXPECT_EQ(third["steps"], 300);
  EXPECT_GT(third["final_test_accuracy"], 0.7);
  EXPECT_TRUE(std::filesystem::exists(dir + "/server-0.before-1/LATEST"));
  EXPECT_TRUE(std::filesystem::exists(dir + "/server-2.before-2/LATEST"));

  // The same number of servers converts nothing.
  const auto again =
      Report(dir, {"--resume", "--servers", "1", "--shard_size", "5000", "--epochs", "3"});
  EXPECT_THAT(last_log_, testing::Not(HasSubstr("converted")));
  EXPECT_THAT(last_log_, HasSubstr("the run had already finished all 300 steps"));
  EXPECT_EQ(again["final_parameters_crc32c"], third["final_parameters_crc32c"]);
}

TEST_F(ResumeServersTest, ARestoredRunRepeatsItsStepsWithTheSameBits) {
  const std::string dir = Path("state");
  const auto first = Report(dir);
  const auto restore = [&](const std::string& step) {
    return daemons_.Run("cli/thinwire", {"checkpoint", "restore", dir, "--step", step});
  };
  const ProcessResult refused = restore("70");
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78});
  EXPECT_THAT(refused.log, HasSubstr("not all servers have a checkpoint of step 70 (server 0 has "
                                     "steps 100, 0; server 1 has steps 100, 0)"));
  const ProcessResult restored = restore("0");
  EXPECT_EQ(restored.exit, ExitStatus()) << restored.log;
  EXPECT_EQ(restored.output, absl::StrCat(dir, ": went back to step 0; the old folders are ", dir,
                                          "/server-N.before-1\n"));
  const auto second = Report(dir, {"--resume"});
  EXPECT_EQ(second["resumed_step"], 0);
  EXPECT_EQ(second["steps"], 100);
  EXPECT_EQ(second["final_parameters_crc32c"], first["final_parameters_crc32c"]);
}

TEST_F(ResumeServersTest, ImportedStatesAndModelsTrainOn) {
  const std::string model = Path("model.safetensors");
  const auto first = Report(Path("state"), {"--output", model});
  const std::string other =
      daemons_.Write("other.textproto", absl::StrCat(kConfig, "compression { shard_size: 1000 }"));

  ProcessResult imported = Import(Path("state"), Path("copy"), other);
  EXPECT_EQ(imported.exit, ExitStatus()) << imported.log;
  EXPECT_EQ(imported.output, Path("copy") + ": 2 servers at step 100\n");
  const auto copy = Report(Path("copy"), {"--resume", "--shard_size", "1000"});
  EXPECT_EQ(copy["resumed_step"], 100);
  EXPECT_EQ(copy["final_parameters_crc32c"], first["final_parameters_crc32c"]);
  EXPECT_EQ(copy["final_test_accuracy"], first["final_test_accuracy"]);

  imported = Import(model, Path("fresh"), config_);
  EXPECT_EQ(imported.exit, ExitStatus()) << imported.log;
  EXPECT_EQ(imported.output, Path("fresh") + ": 2 servers at step 0\n");
  const ProcessResult exported =
      daemons_.Run("cli/thinwire",
                   {"checkpoint", "export", Path("fresh"), "--out", Path("exported.safetensors")});
  EXPECT_EQ(exported.exit, ExitStatus()) << exported.log;
  const ProcessResult evaluated =
      daemons_.Run("cli/thinwire", {"evaluate", "--config", config_, "--model",
                                    Path("exported.safetensors"), "--test_examples", "1000"});
  EXPECT_THAT(
      evaluated.output,
      HasSubstr(absl::StrFormat("test accuracy %.4f", first["final_test_accuracy"].get<double>())));
  const ProcessResult refused = Train(Path("fresh"), {"--resume", "--model", "mlp"});
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78});
  EXPECT_THAT(refused.log, HasSubstr("worker 0: another model (expected 2 tensors, "));

  const auto fresh = Report(Path("fresh"), {"--resume"});
  EXPECT_EQ(fresh["resumed_step"], 0);
  EXPECT_EQ(fresh["steps"], 100);
  EXPECT_GT(fresh["final_test_accuracy"], first["final_test_accuracy"].get<double>() - 0.02);
}

}  // namespace
}  // namespace thinwire
