// Tests training in mixed precision, with loss scaling and with bad data, with real processes and
// sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/safetensors_file.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int kValues = 8;
constexpr double kFirstScale = 1024;
constexpr ExitStatus kDiverged = {.code = 65};

// Returns a safetensors file with EXAMPLES examples of two classes. The class of an example
// determines which half of its values is large. All values of example number INFINITE_EXAMPLE are
// infinite; -1 means that no example is infinite.
std::string TwoClasses(int examples, int infinite_example) {
  std::vector<float> x;
  std::vector<uint8_t> y;
  uint32_t noise = 12345;
  for (int i = 0; i < examples; ++i) {
    y.push_back(static_cast<uint8_t>(i % 2));
    for (int k = 0; k < kValues; ++k) {
      noise = noise * 1664525 + 1013904223;
      const float dim = static_cast<float>(noise >> 8) * 0x1p-24f - 0.5f;
      const float bright = 2 * k / kValues == i % 2 ? 1.5f : 0;
      x.push_back(i == infinite_example ? std::numeric_limits<float>::infinity() : bright + dim);
    }
  }
  const size_t split = x.size() * sizeof(float);
  const std::string header =
      absl::StrCat(R"({"x":{"dtype":"F32","shape":[)", examples, ",", kValues,
                   R"(],"data_offsets":[0,)", split, R"(]},"y":{"dtype":"U8","shape":[)", examples,
                   R"(],"data_offsets":[)", split, ",", split + y.size(), "]}}");
  return SafetensorsFile(header, ValueBytes(x) + ValueBytes(y));
}

class PrecisionTest : public testing::Test {
 protected:
  nlohmann::json Train(const std::string& config, ExitStatus exit = {}) {
    const std::string report = absl::StrCat(daemons_.folder(), "/report.json");
    const ProcessResult run = daemons_.Run(
        "cli/thinwire",
        {"train", "--config", daemons_.Write("train.textproto", config), "--report", report});
    EXPECT_EQ(run.exit, exit) << run.log << run.output;
    return ReadReport(report);
  }

  // Writes a data set with one infinite example. Returns the field `task` of a job file that trains
  // on this data set. The gradient overflows once per epoch, but training goes on, unless MORE has
  // other settings.
  std::string OverflowingTask(
      int epochs, const std::string& more = absl::StrCat("stop_on_divergence: false loss_scale: ",
                                                         kFirstScale)) {
    const auto write = [&](const char* name, int examples, int infinite_example) {
      std::ofstream(daemons_.folder() + "/" + name, std::ios::binary)
          << TwoClasses(examples, infinite_example);
    };
    write("train.safetensors", 400, 117);
    write("test.safetensors", 100, -1);
    return absl::StrCat("task { model: softmax dataset: safetensors data_dir: '", daemons_.folder(),
                        "' batch_size: 10 seed: 7 epochs: ", epochs, " ", more, " }");
  }

  Daemons daemons_;
};

TEST_F(PrecisionTest, ConvolutionalNetworkTrainsInBf16) {
  const nlohmann::json report = Train(R"(
    servers: 2
    consistency { workers: 2 lease_seconds: 5 }
    optimization { optimizer: momentum learning_rate: 0.02 }
    compression { push: fp8_e5m2 pull: bf16 }
    task { model: cnn precision: bf16 train_examples: 4000 test_examples: 1000 epochs: 2 seed: 7 }
  )");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report["config"]["task"]["precision"], "bf16");
  EXPECT_GT(report["final_test_accuracy"], 0.6);
  ASSERT_EQ(report["worker_rows"].size(), 2u);
  for (const auto& row : report["worker_rows"]) {
    EXPECT_TRUE(row["loss_scale"].is_null())
        << "bf16 needs no loss scale: it has the range of fp32";
    EXPECT_EQ(row["nonfinite_gradients"], 0);
  }
}

TEST_F(PrecisionTest, OverflowsAreCountedAndTrainingRecovers) {
  constexpr int kEpochs = 3;
  const nlohmann::json report = Train(absl::StrCat("consistency { workers: 2 lease_seconds: 5 } "
                                                   "optimization { learning_rate: 0.1 } ",
                                                   OverflowingTask(kEpochs)),
                                      kDiverged);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_GT(report["final_test_accuracy"], 0.9);
  ASSERT_EQ(report["worker_rows"].size(), 2u);
  uint64_t overflowed = 0;
  for (const auto& row : report["worker_rows"]) {
    const auto steps = row["overflowed_steps"].get<uint64_t>();
    EXPECT_EQ(row["loss_scale"], kFirstScale / std::exp2(steps));
    EXPECT_EQ(row["nonfinite_gradients"], 2 * steps)
        << "one shard of weights and one of biases per overflow";
    overflowed += steps;
  }
  EXPECT_EQ(overflowed, kEpochs);
}

TEST_F(PrecisionTest, AnInfiniteExampleEndsTheRun) {
  const nlohmann::json report =
      Train(absl::StrCat("consistency { workers: 2 lease_seconds: 5 } ", OverflowingTask(1000, "")),
            kDiverged);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_THAT(report["diverged"].get<std::string>(),
              HasSubstr("is not finite: the data has a value that is not finite"));
  ASSERT_EQ(report["problems"].size(), 1u);
  EXPECT_THAT(report["problems"][0].get<std::string>(), HasSubstr("diverged: worker "));
  EXPECT_LT(report["steps"], 1000);
}

TEST_F(PrecisionTest, TheOtherWorkersFinishWithoutTheDivergedOne) {
  const std::string job =
      absl::StrCat("consistency { workers: 2 lease_seconds: 60 } ", OverflowingTask(2, ""));
  const std::string server = daemons_.StartServer("server", job);
  ASSERT_NE(server, "");
  for (const std::string number : {"0", "1"}) {
    daemons_.StartWorker("worker" + number, job, {"--addresses", server, "--worker", number});
  }
  const std::vector<ExitStatus> ends = {daemons_.WaitForEnd("worker0").exit,
                                        daemons_.WaitForEnd("worker1").exit};
  EXPECT_THAT(ends, UnorderedElementsAre(ExitStatus(), kDiverged));
}

TEST_F(PrecisionTest, LossScaleIsRestoredAfterTermination) {
  const std::string job = absl::StrCat(
      "consistency { workers: 1 lease_seconds: 2 } optimization { learning_rate: 0.1 } ",
      OverflowingTask(/*epochs=*/1000));
  const std::string server = daemons_.StartServer("server", job);
  ASSERT_NE(server, "");
  const std::vector<std::string> flags = {
      "--addresses", server, "--delay", "20ms", "--state_dir", daemons_.folder() + "/state"};
  daemons_.StartWorker("first", job, flags);
  ASSERT_TRUE(daemons_.WaitForEvent("first", IsEvent(WorkerEvent::kEpoch)).has_value());
  daemons_.Signal("first", SIGTERM);
  const std::optional<WorkerEvent> done =
      daemons_.WaitForEvent("first", IsEvent(WorkerEvent::kDone));
  ASSERT_TRUE(done.has_value());
  const double scale = done->done().loss_scale();
  EXPECT_LT(scale, kFirstScale);
  EXPECT_EQ(daemons_.WaitForEnd("first").exit, ExitStatus{.code = 75});

  daemons_.StartWorker("second", job, flags);
  const std::optional<WorkerEvent> step =
      daemons_.WaitForEvent("second", IsEvent(WorkerEvent::kStep));
  ASSERT_TRUE(step.has_value());
  EXPECT_LE(step->step().loss_scale(), scale);
  daemons_.Signal("second", SIGTERM);
  EXPECT_THAT(daemons_.WaitForEnd("second").log,
              HasSubstr(absl::StrCat(".loss_scale: loss scale ", scale)));
}

}  // namespace
}  // namespace thinwire
