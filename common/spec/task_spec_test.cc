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
