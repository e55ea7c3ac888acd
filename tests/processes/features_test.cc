// Trains with real processes, once per feature, and checks that the run ends in order and that the
// feature acted, by the report or by comparison with the run without it. The modules' own tests
// check the arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::IsEmpty;

constexpr char kJob[] = R"(
  consistency { workers: 2 ordered_fold: true }
  optimization { learning_rate: 0.05 }
  task { model: mlp threads: 1 batch_size: 10 train_examples: 200 test_examples: 50 epochs: 2 }
)";
constexpr uint64_t kSteps = 20;  // of two workers in two epochs

class FeaturesTest : public testing::Test {
 protected:
  // Trains JOB with FLAGS and returns the report.
  nlohmann::json Train(const std::string& job, const std::vector<std::string>& flags = {}) {
    const std::string report = daemons_.folder() + "/report.json";
    std::vector<std::string> arguments = {
        "train", "--config", daemons_.Write("job", job), "--report", report, "--output", model_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log << run.output;
    nlohmann::json json = ReadReport(report);
    EXPECT_THAT(json["problems"], IsEmpty());
    return json;
  }

  // Returns the bytes of the tensor NAME in the model file.
  std::vector<uint8_t> Tensor(const std::string& name) const {
    std::ifstream in(model_, std::ios::binary);
    const std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
    const auto index = ParseSafetensors(file, model_);
    if (!index.ok() || !index->contains(name)) {
      ADD_FAILURE() << name << ": " << index.status();
      return {};
    }
    const auto bytes = index->at(name).bytes;
    return {bytes.begin(), bytes.end()};
  }

  Daemons daemons_;
  const std::string model_ = daemons_.folder() + "/model.safetensors";
};

TEST_F(FeaturesTest, LocalStepsPushOnceForAllOfThem) {
  const nlohmann::json plain = Train(kJob);
  const nlohmann::json local =
      Train(kJob, {"--local_steps", "5", "--learning_rate", "1", "--local_learning_rate", "0.05"});
  EXPECT_EQ(plain["steps"], kSteps);
  EXPECT_EQ(local["steps"], kSteps / 5);
  EXPECT_EQ(local["push_bytes_raw"].get<uint64_t>() * 5, plain["push_bytes_raw"].get<uint64_t>());
  EXPECT_LT(local["epoch_rows"][1]["train_loss"], local["epoch_rows"][0]["train_loss"]);
}

TEST_F(FeaturesTest, AParameterGroupKeepsTheTensorsThatItFreezes) {
  Train(absl::StrCat(kJob, "parameter_group { match: '*' learning_rate_factor: 0 }"));
  const std::vector<uint8_t> first = Tensor("dense1.weight");
  const std::vector<uint8_t> last = Tensor("dense3.weight");
  Train(absl::StrCat(kJob, "parameter_group { match: 'dense1.*' learning_rate_factor: 0 }"));
  EXPECT_EQ(Tensor("dense1.weight"), first);
  EXPECT_NE(Tensor("dense3.weight"), last);
}

TEST_F(FeaturesTest, PowerSgdSendsFactors) {
  const nlohmann::json report = Train(kJob, {"--push", "powersgd", "--powersgd_rank", "1"});
  EXPECT_EQ(report["push"], "powersgd");
  EXPECT_LT(report["push_bytes_encoded"].get<uint64_t>() * 20,
            report["push_bytes_raw"].get<uint64_t>());
  EXPECT_LT(report["epoch_rows"][1]["train_loss"], report["epoch_rows"][0]["train_loss"]);
}

// DeMo: dct_topk, a residual that decays, and signSGD.
TEST_F(FeaturesTest, DemoTrainsWithOneCoefficientOf64) {
  const nlohmann::json report =
      Train(kJob, {"--push", "dct_topk", "--topk_values", "fp8_e5m2", "--residual_decay", "0.99",
                   "--optimizer", "sign_sgd", "--learning_rate", "0.001"});
  EXPECT_EQ(report["push"], "dct_topk");
  EXPECT_LT(report["push_bytes_encoded"].get<uint64_t>() * 60,
            report["push_bytes_raw"].get<uint64_t>());
  EXPECT_LT(report["epoch_rows"][1]["train_loss"], report["epoch_rows"][0]["train_loss"]);
}

TEST_F(FeaturesTest, EveryOptimizerEndsAtParametersOfItsOwn) {
  std::set<uint64_t> ends = {Train(kJob)["final_parameters_crc32c"]};
  for (const auto& [optimizer, rate] :
       {std::pair{"lars", "2"}, {"lamb", "0.02"}, {"lion", "0.001"}}) {
    const nlohmann::json report = Train(kJob, {"--optimizer", optimizer, "--learning_rate", rate});
    EXPECT_TRUE(ends.insert(report["final_parameters_crc32c"].get<uint64_t>()).second) << optimizer;
    EXPECT_LT(report["epoch_rows"][1]["train_loss"], report["epoch_rows"][0]["train_loss"])
        << optimizer;
  }
  EXPECT_EQ(ends.size(), 4u);
}

// Worker 1 waits in each step, as a slow machine would. Over about a hundred steps it is dealt as many
// examples as worker 0, and then fewer.
TEST_F(FeaturesTest, ASlowWorkerTakesFewerLocalSteps) {
  const std::string job = R"(
    consistency { workers: 2 }
    optimization { learning_rate: 1 }
    task {
      model: mlp threads: 1 batch_size: 1 train_examples: 1500 test_examples: 50 epochs: 2
      local_steps: 8 auto_local_steps: true
    }
    straggler: '1:40ms'
  )";
  const nlohmann::json report = Train(job);
  const uint64_t fast = report["worker_rows"][0]["examples"].get<uint64_t>();
  const uint64_t slow = report["worker_rows"][1]["examples"].get<uint64_t>();
  EXPECT_EQ(fast + slow, 3000u);
  EXPECT_LT(slow + 300, fast);
}

// auto_slack chooses at most 16, so it replaces the first slack of 64.
TEST_F(FeaturesTest, AutoSlackChangesTheSlack) {
  const std::string job = R"(
    consistency { mode: ssp workers: 2 slack: 64 auto_slack: true }
    optimization { learning_rate: 0.01 }
    task { model: softmax threads: 1 batch_size: 1 train_examples: 600 test_examples: 50 }
    straggler: '0:20ms' straggler: '1:20ms'
  )";
  const nlohmann::json rule = Train(job)["final_rule"];
  EXPECT_EQ(rule["mode"], "ssp");
  EXPECT_LE(rule["slack"], 16) << rule;
}

}  // namespace
}  // namespace thinwire
