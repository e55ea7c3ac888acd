#include "common/spec/task_spec.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace thinwire {
namespace {

std::string Error(const TaskSpec& spec) {
  return std::string(spec.Validate().ToStatus().message());
}

TEST(TaskSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error({}), ""); }

TEST(TaskSpecTest, EverySettingOutsideItsRangeIsAProblem) {
  EXPECT_EQ(Error({.data_dir = ""}), "data_dir: empty (expected a folder, got \"\")");
  EXPECT_EQ(Error({.batch_size = 0}), "batch_size: out of range (expected 1 to 1048576, got 0)");
  EXPECT_EQ(Error({.epochs = 0}), "epochs: out of range (expected at least 1, got 0)");
  EXPECT_EQ(Error({.device = "gpu"}), "device: unknown (expected auto, cpu or cuda:N, got gpu)");
  EXPECT_NE(Error({.device = "cuda:"}), "");
  EXPECT_EQ(Error({.device = "cuda:1"}), "");
  EXPECT_EQ(Error({.threads = 0}), "threads: out of range (expected 1 to 1024, got 0)");
}

TEST(TaskSpecTest, AModelFileBelongsToTorchScript) {
  EXPECT_EQ(Error({.model = ModelKind::kTorchScript, .model_file = "x.pt"}), "");
  EXPECT_EQ(Error({.model = ModelKind::kTorchScript}),
            "model_file: missing (expected a file for model: torchscript, got \"\")");
  EXPECT_EQ(Error({.model_file = "x.pt"}),
            "model_file: only valid with model: torchscript (got model: cnn)");
}

TEST(TaskSpecTest, ALossScaleIsAPowerOfTwo) {
  EXPECT_EQ(Error({.loss_scale = 1}), "");
  EXPECT_EQ(Error({.loss_scale = 16777216}), "");
  EXPECT_EQ(Error({.loss_scale = 3}),
            "loss_scale: out of range (expected 0 or a power of two up to 16777216, got 3)");
  EXPECT_NE(Error({.loss_scale = 33554432}), "");
  EXPECT_EQ(Error({.loss_scale_interval = 0}),
            "loss_scale_interval: out of range (expected at least 1, got 0)");
}

TEST(TaskSpecTest, TheSettingsOfLocalStepsAndAccumulationHaveRanges) {
  EXPECT_EQ(Error({.local = {.count = 500}}), "");
  EXPECT_EQ(Error({.local = {.count = 0}}),
            "local_steps: out of range (expected 1 to 1048576, got 0)");
  EXPECT_EQ(Error({.local = {.count = 1048577}}),
            "local_steps: out of range (expected 1 to 1048576, got 1048577)");
  EXPECT_NE(Error({.local = {.learning_rate = -1}}), "");
  EXPECT_NE(Error({.local = {.momentum = 1}}), "");
  EXPECT_NE(Error({.local = {.weight_decay = -1}}), "");
  EXPECT_EQ(Error({.accumulate = 0}), "accumulate: out of range (expected 1 to 1048576, got 0)");
}

TEST(TaskSpecTest, AStepHasALargestNumberOfExamples) {
  const TaskSpec largest = {.batch_size = 1024, .local = {.count = 64}, .accumulate = 16};
  EXPECT_EQ(largest.gradient_examples(), 16384u);
  EXPECT_EQ(largest.step_examples(), 1048576u);
  EXPECT_EQ(Error(largest), "");
  EXPECT_EQ(Error({.batch_size = 1024, .local = {.count = 65}, .accumulate = 16}),
            "local_steps: too many examples in a step (expected batch_size * accumulate * "
            "local_steps to be at most 1048576, got 1064960)");
  EXPECT_EQ(Error({.batch_size = 1024, .accumulate = 1025}),
            "accumulate: too many examples in a step (expected batch_size * accumulate * "
            "local_steps to be at most 1048576, got 1049600)");
}

TEST(TaskSpecTest, TheLossIsScaledWithFp16OrWithALossScale) {
  EXPECT_EQ(TaskSpec{}.loss_scaling(), std::nullopt);
  EXPECT_EQ(TaskSpec{.precision = Precision::kBf16}.loss_scaling(), std::nullopt);
  EXPECT_EQ(TaskSpec{.precision = Precision::kFp16}.loss_scaling(), LossScaling());
  EXPECT_EQ((TaskSpec{.loss_scale = 1024, .loss_scale_interval = 10}.loss_scaling()),
            (LossScaling{.first = 1024, .interval = 10}));
}

TEST(TaskSpecTest, PrintsTheModelAndTheData) {
  std::ostringstream out;
  out << TaskSpec{.model = ModelKind::kMlp, .precision = Precision::kBf16};
  EXPECT_EQ(out.str(), "mlp on fashion_mnist, batch_size 32, epochs 1, seed 1, bf16");
}

}  // namespace
}  // namespace thinwire
