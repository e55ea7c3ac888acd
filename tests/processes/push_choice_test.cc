// Tests `thinwire train` with a push codec chosen at run time, with real processes, sockets and
// data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Softmax regression on a part of Fashion-MNIST. A run takes a few seconds.
constexpr char kConfig[] = R"(
  servers: 2
  consistency { mode: sync workers: 2 lease_seconds: 5 }
  optimization { optimizer: sgd learning_rate: 0.05 }
  task { model: softmax train_examples: 6000 test_examples: 2000 batch_size: 50 epochs: 2 seed: 7 }
)";

class PushChoiceTest : public testing::Test {
 protected:
  nlohmann::json Train(const std::string& push) {
    const std::string report = absl::StrCat(daemons_.folder(), "/", push, ".json");
    const ProcessResult run = daemons_.Run(
        "cli/thinwire", {"train", "--config", daemons_.Write("train.textproto", kConfig), "--push",
                         push, "--report", report});
    EXPECT_EQ(run.exit, ExitStatus()) << run.log << run.output;
    return ReadReport(report);
  }

  // Expects that training succeeded and that every worker reports a codec and a reason for the
  // group of matrices and for the group of vectors.
  static void ExpectChoices(const nlohmann::json& report) {
    ASSERT_FALSE(report.is_discarded());
    EXPECT_GT(report["final_test_accuracy"], 0.65);
    ASSERT_EQ(report["worker_rows"].size(), 2u);
    for (const auto& row : report["worker_rows"]) {
      ASSERT_EQ(row["push_codecs"].size(), 2u) << row;
      EXPECT_EQ(row["push_codecs"][0]["group"], "matrices");
      EXPECT_EQ(row["push_codecs"][1]["group"], "vectors");
      for (const auto& chosen : row["push_codecs"]) {
        EXPECT_THAT(chosen["codec"].get<std::string>(),
                    AnyOf("fp32", "bf16", "fp8_e4m3", "fp8_e5m2"));
        EXPECT_THAT(chosen["reason"].get<std::string>(), HasSubstr("MB/s: "));
      }
    }
  }

  Daemons daemons_;
};

TEST_F(PushChoiceTest, AutoTrainsAndReportsItsChoices) { ExpectChoices(Train("auto")); }

TEST_F(PushChoiceTest, FastestTrainsAndReportsItsChoices) { ExpectChoices(Train("fastest")); }

}  // namespace
}  // namespace thinwire
