// Trains with real processes, writes the model and evaluates the file: the report, the file and
// `thinwire evaluate` must agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/files/crc32c.h"
#include "common/files/safetensors.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kClasses = 3;

// Returns a safetensors file with EXAMPLES images of SIDE x SIDE values. One third of an image's
// rows is brighter by BRIGHT_ROWS on average; the class of the image determines which. The noise is large,
// so that a trained model still makes mistakes.
std::string Images(uint64_t examples, uint32_t seed, float bright_rows, uint64_t side) {
  std::vector<float> x;
  std::vector<uint8_t> y;
  uint32_t noise = seed;
  for (uint64_t i = 0; i < examples; ++i) {
    y.push_back(static_cast<uint8_t>(i % kClasses));
    for (uint64_t k = 0; k < side * side; ++k) {
      noise = noise * 1664525 + 1013904223;
      const float bright = k * kClasses / (side * side) == i % kClasses ? bright_rows : 0;
      x.push_back(bright + 4 * (static_cast<float>(noise >> 8) * 0x1p-24f - 0.5f));
    }
  }
  const std::vector<SafetensorsTensor> tensors = {
      {"x",
       "F32",
       {static_cast<int64_t>(examples), 1, static_cast<int64_t>(side), static_cast<int64_t>(side)},
       x.size() * sizeof(float)},
      {"y", "U8", {static_cast<int64_t>(examples)}, y.size()}};
  std::string file = SafetensorsHeader(tensors);
  file.append(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float));
  file.append(reinterpret_cast<const char*>(y.data()), y.size());
  return file;
}

class ModelOutputTest : public testing::Test {
 protected:
  ModelOutputTest() { WriteImages(/*bright_rows=*/0.3f); }

  void WriteImages(float bright_rows, uint64_t side = 8) {
    const auto write = [&](const char* name, uint64_t examples, uint32_t seed) {
      std::ofstream(daemons_.folder() + "/" + name, std::ios::binary)
          << Images(examples, seed, bright_rows, side);
    };
    write("train.safetensors", 240, 1);
    write("test.safetensors", 90, 2);
  }

  // Returns a job file that trains MODEL. REST has the other fields of the job.
  std::string Job(const std::string& model, const std::string& task, const std::string& rest) {
    return absl::StrCat(rest, " task { model: ", model, " dataset: safetensors data_dir: '",
                        daemons_.folder(), "' batch_size: 10 seed: 7 ", task, " }");
  }

  // Trains and returns the report.
  nlohmann::json Train(const std::string& job, const std::vector<std::string>& flags = {},
                       ExitStatus exit = {}) {
    const std::string report = absl::StrCat(daemons_.folder(), "/report.json");
    std::vector<std::string> arguments = {
        "train", "--config", daemons_.Write("job", job), "--report", report, "--output", model_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, exit) << run.log << run.output;
    if (exit.ok()) {
      EXPECT_THAT(run.output, HasSubstr("\n  model  "));
    }
    return ReadReport(report);
  }

  ProcessResult Evaluate(const std::string& job, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = {"evaluate", "--config", daemons_.Write("job", job),
                                          "--model", model_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return daemons_.Run("cli/thinwire", arguments);
  }

  // Exports the newest checkpoint in the folder STATE to the model file.
  void Export(const std::string& state, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"checkpoint", "export", state, "--out", model_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log;
  }

  // Calls ACTION with the bytes of each parameter in the model file, in the order of their names.
  void ForEachParameter(const std::function<void(std::span<const std::byte>)>& action) {
    std::ifstream in(model_, std::ios::binary);
    const std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
    const auto index = ParseSafetensors(file, model_);
    EXPECT_TRUE(index.ok()) << index.status();
    for (const auto& [name, entry] : *index) {
      if (absl::StrContains(name, ".running_") || entry.dtype != "F32") continue;
      action(std::as_bytes(entry.bytes));
    }
  }
  // Return all parameters in the model file: their CRC-32C, and their values.
  uint32_t ParametersCrc32c() {
    uint32_t crc = 0;
    ForEachParameter([&crc](std::span<const std::byte> bytes) { crc = Crc32c(bytes, crc); });
    return crc;
  }
  std::vector<float> Parameters() {
    std::vector<float> values;
    ForEachParameter([&values](std::span<const std::byte> bytes) {
      const size_t before = values.size();
      values.resize(before + bytes.size() / sizeof(float));
      std::memcpy(values.data() + before, bytes.data(), bytes.size());
    });
    return values;
  }

  // Checks that the report, the model file and `thinwire evaluate` agree.
  void ExpectAgreement(const std::string& job, const nlohmann::json& report) {
    ASSERT_FALSE(report.is_discarded());
    EXPECT_EQ(report["output"], model_);
    ASSERT_TRUE(report["final_test_accuracy"].is_number());
    const ProcessResult evaluated = Evaluate(job);
    EXPECT_EQ(evaluated.exit, ExitStatus()) << evaluated.log;
    EXPECT_EQ(evaluated.output, absl::StrFormat("test accuracy %.4f\ntest loss %.4f\n",
                                                report["final_test_accuracy"].get<double>(),
                                                report["final_test_loss"].get<double>()));
    if (report["output_epoch"].is_null()) {
      EXPECT_EQ(ParametersCrc32c(), report["final_parameters_crc32c"]);
    }
  }

  Daemons daemons_;
  const std::string model_ = daemons_.folder() + "/model.safetensors";
};

TEST_F(ModelOutputTest, SyncInFp32) {
  const std::string job = Job("mlp", "epochs: 2",
                              "servers: 2 consistency { workers: 2 } "
                              "optimization { learning_rate: 0.05 }");
  ExpectAgreement(job, Train(job));
}

// The first layer has 331,776 values, more than a shard.
TEST_F(ModelOutputTest, TheServersOfLambShareALargeTensor) {
  WriteImages(/*bright_rows=*/0.3f, /*side=*/36);
  const auto job = [this](const std::string& rest) {
    return Job("mlp", "epochs: 1",
               absl::StrCat("consistency { workers: 2 ", rest,
                            " } optimization { optimizer: lamb learning_rate: 0.01 }"));
  };
  std::vector<std::vector<float>> models;
  for (const char* const servers : {"1", "2", "3"}) {
    const std::string ordered = job("ordered_fold: true");
    ExpectAgreement(ordered, Train(ordered, {"--servers", servers}));
    models.push_back(Parameters());
  }
  ASSERT_GT(models[0].size(), 331'776u);
  for (size_t i = 0; i < models[0].size(); ++i) {
    for (size_t m = 1; m < 3; ++m) ASSERT_NEAR(models[m][i], models[0][i], 1e-6) << i;
  }
  const ProcessResult refused = daemons_.Run(
      "cli/thinwire", {"train", "--config", daemons_.Write("job", job("mode: async"))});
  EXPECT_FALSE(refused.exit.ok());
  EXPECT_THAT(refused.log, HasSubstr("has 331776 values; with optimizer lars or lamb, more than "
                                     "262144 are only valid with mode: sync or backup (got mode: "
                                     "async)"));
}

// The evaluator's replica has parameters that went through fp8, but the file has the exact ones.
TEST_F(ModelOutputTest, SyncWithAnFp8Pull) {
  const std::string job = Job("mlp", "epochs: 2",
                              "servers: 2 consistency { workers: 2 } "
                              "compression { push: fp8_e5m2 pull: fp8_e5m2 }"
                              "optimization { learning_rate: 0.05 }");
  ExpectAgreement(job, Train(job));
}

// Worker 0 finishes long before worker 1, and the last gradients are folded when both have left.
TEST_F(ModelOutputTest, AsyncWithAStragglerAndLeftoverGradients) {
  const std::string job = Job("softmax", "epochs: 2",
                              "servers: 2 straggler: '1:20ms' "
                              "consistency { mode: async workers: 2 fold_every: 5 } "
                              "optimization { learning_rate: 0.05 }");
  ExpectAgreement(job, Train(job));
}

// The file and every reported accuracy are those of the averages; the checkpoint has both kinds of
// parameters.
TEST_F(ModelOutputTest, AveragesOfTheParameters) {
  const std::string job =
      Job("mlp", "epochs: 2",
          "servers: 2 consistency { workers: 2 } "
          "optimization { learning_rate: 0.1 } recovery { durability: checkpoint }");
  const std::string state = daemons_.folder() + "/state";
  const nlohmann::json report = Train(job, {"--parameter_average", "0.99", "--state_dir", state});
  ASSERT_FALSE(report.is_discarded());
  const ProcessResult evaluated = Evaluate(job);
  EXPECT_EQ(evaluated.output, absl::StrFormat("test accuracy %.4f\ntest loss %.4f\n",
                                              report["final_test_accuracy"].get<double>(),
                                              report["final_test_loss"].get<double>()));
  EXPECT_EQ(report["epoch_rows"][1]["test_loss"], report["final_test_loss"]);
  const uint32_t averages = ParametersCrc32c();
  EXPECT_NE(averages, report["final_parameters_crc32c"]);
  Export(state, {});
  EXPECT_EQ(ParametersCrc32c(), averages);
  Export(state, {"--masters"});
  EXPECT_EQ(ParametersCrc32c(), report["final_parameters_crc32c"]);
}

TEST_F(ModelOutputTest, BatchNormalization) {
  const std::string job = Job("resnet20", "epochs: 2 train_examples: 120",
                              "consistency { workers: 2 } optimization { learning_rate: 0.05 }");
  ExpectAgreement(job, Train(job));
}

TEST_F(ModelOutputTest, TheBestEpochIsKept) {
  // The rate is much too high, so that the accuracy goes up and down.
  const std::string job = Job("mlp", "epochs: 6 stop_on_divergence: false",
                              "servers: 2 consistency { workers: 2 } "
                              "optimization { learning_rate: 0.4 }");
  const nlohmann::json report = Train(job, {"--keep", "best"});
  ExpectAgreement(job, report);
  const auto& rows = report["epoch_rows"];
  ASSERT_EQ(rows.size(), 6u);
  double best = -1;
  for (const auto& row : rows) best = std::max(best, row["test_accuracy"].get<double>());
  ASSERT_TRUE(report["output_epoch"].is_number());
  EXPECT_EQ(rows[report["output_epoch"].get<size_t>()]["test_accuracy"], best);
  EXPECT_EQ(report["final_test_accuracy"], best);
}

// The learning rate rises until the accuracy has fallen again. The checkpoint after the
// best test stays, and its parameters have the accuracy of the test.
TEST_F(ModelOutputTest, TheCheckpointAfterTheBestTestStays) {
  // In async, the parameters change between the test and the checkpoint.
  constexpr double kTolerance = 0.15;
  WriteImages(/*bright_rows=*/0.8f);
  for (const char* const mode : {"consistency { mode: sync workers: 2 } "
                                 "recovery { durability: checkpoint checkpoint_seconds: 1 ",
                                 "consistency { mode: async workers: 2 } "
                                 "recovery { durability: log checkpoint_seconds: 1 "}) {
    // A step takes 50 ms, so that an announced step is less than an epoch ahead.
    const std::string job =
        Job("mlp", "epochs: 7 stop_on_divergence: false",
            absl::StrCat("servers: 2 straggler: '0:50ms' straggler: '1:50ms' ", mode,
                         "keep_checkpoints: 1 keep_best: 1 } "
                         "optimization { learning_rate: 0.75 warmup: 1 }"));
    const std::string state = daemons_.folder() + "/best";
    std::filesystem::remove_all(state);
    const nlohmann::json report =
        Train(job, {"--state_dir", state, "--batch_size", "2"}, /*exit=*/{.code = 65});
    ASSERT_FALSE(report.is_discarded());
    double best = 0;
    for (const auto& row : report["epoch_rows"]) {
      best = std::max(best, row["test_accuracy"].get<double>());
    }
    // In async, the accuracy sometimes recovers a little. It must stay so far below the best one that
    // the parameters of the two differ in the last line of this test.
    EXPECT_LT(report["final_test_accuracy"].get<double>(), best - kTolerance);

    const std::string list = daemons_.Run("cli/thinwire", {"checkpoint", "list", state}).output;
    const std::string result = absl::StrFormat(" %.4f at step ", best);
    int checkpoint_count = -1, tested_count = 0;  // without the head
    std::string step;
    const std::vector<std::string> lines = absl::StrSplit(list, '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      ++checkpoint_count;
      if (!absl::StrContains(line, result)) continue;
      ++tested_count;
      // The columns: server, name, shards, versions, steps. In async, the steps are a range.
      const std::vector<std::string> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
      step = std::vector<std::string>(absl::StrSplit(columns[4], '-')).back();
    }
    EXPECT_EQ(tested_count, 2) << list;
    EXPECT_LE(checkpoint_count, 6) << "the newest, the newest healthy and the best ones\n" << list;
    Export(state, {"--step", step});
    double accuracy = 0;
    const std::string evaluated = Evaluate(job).output;
    ASSERT_EQ(std::sscanf(evaluated.c_str(), "test accuracy %lf", &accuracy), 1) << evaluated;
    EXPECT_NEAR(accuracy, best, kTolerance);
  }
}

TEST_F(ModelOutputTest, TheNextWorkerWritesTheModelWhenTheEvaluatorIsKilled) {
  // 108 steps: with fewer than 110 steps, no symptom of divergence is tested.
  const std::string job = Job("softmax", "epochs: 9",
                              "name: 'next' silence_seconds: 4 "
                              "consistency { workers: 2 lease_seconds: 2 }");
  const std::string address = daemons_.StartServer("server", job, {"--listen", "127.0.0.1:0"});
  ASSERT_NE(address, "");
  for (const char* worker : {"0", "1"}) {
    daemons_.StartWorker(
        absl::StrCat("worker", worker), job,
        {"--worker", worker, "--addresses", address, "--delay", "20ms", "--output", model_});
  }
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(3)));
  daemons_.Signal("worker0", SIGKILL);
  const auto done = daemons_.WaitForEvent("worker1", IsEvent(WorkerEvent::kDone));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->done().output(), model_);
  EXPECT_TRUE(done->done().evaluator());
  EXPECT_EQ(daemons_.WaitForEnd("worker1").exit, ExitStatus());
  const ProcessResult evaluated = Evaluate(job);
  EXPECT_THAT(evaluated.output, HasSubstr(absl::StrFormat("test accuracy %.4f\n",
                                                          done->done().final_test_accuracy())));
}

// The folder of the file is away when training ends, as a full disk has no room. The servers stay.
TEST_F(ModelOutputTest, TheModelIsWrittenWhenTheFileSystemLetsItOrTheOperatorGivesUp) {
  const std::string folder = daemons_.folder() + "/out";
  const std::string job = Job("softmax", "epochs: 4", "servers: 2 straggler: '0:20ms'");
  for (const bool gives_up : {false, true}) {
    const std::string run = gives_up ? "given up" : "written";
    std::filesystem::create_directory(folder);
    daemons_.Start(run, "cli/thinwire",
                   {"train", "--config", daemons_.Write("job", job), "--output",
                    folder + "/model.safetensors"});
    ASSERT_TRUE(daemons_.WaitForLog(run, "epoch 0: "));
    std::filesystem::remove(folder);
    ASSERT_TRUE(daemons_.WaitForLog(run, "model not written: " + folder + "/model.safetensors"));
    if (gives_up) {
      daemons_.Signal(run, SIGINT);
    } else {
      std::filesystem::create_directory(folder);
    }
    const ProcessResult end = daemons_.WaitForEnd(run);
    EXPECT_EQ(end.exit, ExitStatus{.code = gives_up ? 74 : 0}) << end.log;
    EXPECT_EQ(std::filesystem::exists(folder + "/model.safetensors"), !gives_up);
    EXPECT_THAT(end.log, Not(HasSubstr("started again")));
    std::filesystem::remove_all(folder);
  }
}

TEST_F(ModelOutputTest, AWrongFileIsOneClearSentence) {
  const std::string job = Job("softmax", "", "");
  ProcessResult result = Evaluate(job);
  EXPECT_EQ(result.exit, (ExitStatus{.code = 78}));
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.log, HasSubstr(absl::StrCat("error: ", model_, ": ")));
  EXPECT_EQ(std::ranges::count(result.log, '\n'), 1) << result.log;

  std::ofstream(model_) << "test accuracy 1";
  result = Evaluate(job);
  EXPECT_EQ(result.exit, (ExitStatus{.code = 78}));
  EXPECT_EQ(result.log,
            absl::StrCat("error: ", model_,
                         ": not a model file (expected a safetensors file, got a text)\n"));

  std::filesystem::copy_file(daemons_.folder() + "/test.safetensors", model_,
                             std::filesystem::copy_options::overwrite_existing);
  result = Evaluate(job);
  EXPECT_EQ(result.exit, (ExitStatus{.code = 78}));
  EXPECT_EQ(result.log, absl::StrCat("error: ", model_,
                                     ": tensor \"dense.weight\" is missing (expected F32 [3, "
                                     "64])\n"));

  result = Evaluate(job, {"--learning_rate", "1"});
  EXPECT_EQ(result.exit, (ExitStatus{.code = 64}));
  EXPECT_THAT(result.log, HasSubstr("--learning_rate: unknown flag"));
}

TEST_F(ModelOutputTest, AFolderThatDoesNotExistIsAnErrorBeforeTraining) {
  const std::string job = Job("softmax", "", "");
  const ProcessResult train =
      daemons_.Run("cli/thinwire", {"train", "--config", daemons_.Write("job", job), "--output",
                                    daemons_.folder() + "/none/m.safetensors"});
  EXPECT_EQ(train.exit, (ExitStatus{.code = 78}));
  EXPECT_THAT(train.log, HasSubstr("error: --output: "));
  EXPECT_THAT(train.log, Not(HasSubstr("# the run")));
  const ProcessResult worker = daemons_.Run(
      "worker/worker", {"--config", daemons_.Write("job", job), "--addresses", "127.0.0.1:1",
                        "--output", daemons_.folder() + "/none/m.safetensors"});
  EXPECT_EQ(worker.exit, (ExitStatus{.code = 78}));
  EXPECT_THAT(worker.log, HasSubstr("worker: --output: "));
}

}  // namespace
}  // namespace thinwire
