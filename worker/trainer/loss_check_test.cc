#include "worker/trainer/loss_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <memory>
#include <string>

#include "common/spec/task_spec.h"
#include "worker/batches/batch_buffer.h"
#include "worker/models/factory.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns three examples: x [4] of ones and a target [], 2.
Dataset Ones() {
  return {.example_shape = {4},
          .values = std::vector<float>(12, 1),
          .targets = std::vector<float>(3, 2)};
}

// Saves a module with the parameters w [4] and table [10, 2] and this forward method, and returns
// the result of the check on EXAMPLES.
absl::Status Check(const std::string& forward, const Dataset& examples = Ones()) {
  torch::jit::Module module("Module");
  module.register_parameter("w", at::ones({4}).set_requires_grad(true), false);
  module.register_parameter("table", at::ones({10, 2}).set_requires_grad(true), false);
  module.register_buffer("seen", at::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(forward);
  const TaskSpec task = {.model = ModelKind::kTorchScript,
                         .model_file = ::testing::TempDir() + "/loss_check.pt",
                         .device = "cpu",
                         .loss = LossKind::kScript};
  module.save(task.model_file);
  const std::unique_ptr<Model> model = MakeModel(task, FormOf(examples)).value();
  const auto buffers = model->Buffers().value();
  const absl::Status status = CheckLoss(*model, examples);
  if (status.ok()) {
    EXPECT_EQ(model->Buffers().value(), buffers);
  }
  return status;
}

TEST(LossCheckTest, AMeanIsAccepted) {
  EXPECT_EQ(Check(R"(
    def forward(self, x, y):
        self.seen.add_(1)
        return ((x * self.w).sum(1) - y).pow(2).mean()
  )"),
            absl::OkStatus());
}

TEST(LossCheckTest, ADataSetMayHaveOneExample) {
  Dataset one = Ones();
  one.Truncate(1);
  EXPECT_EQ(
      Check("def forward(self, x, y):\n    return ((x * self.w).sum(1) - y).pow(2).mean()\n", one),
      absl::OkStatus());
}

TEST(LossCheckTest, ASumIsRefused) {
  EXPECT_EQ(Check("def forward(self, x, y):\n    return ((x * self.w).sum(1) - y).pow(2).sum()\n")
                .message(),
            "loss: script: a sum over the batch (expected the mean over the examples, got 8 for 2 "
            "examples and 16 for these examples twice)");
}

TEST(LossCheckTest, ALossPerExampleIsRefused) {
  EXPECT_THAT(
      Check("def forward(self, x, y):\n    return ((x * self.w).sum(1) - y).pow(2)\n").message(),
      HasSubstr(
          "forward: wrong loss (expected a scalar, Float [], such as the mean over the batch, "
          "got Float [2])"));
}

TEST(LossCheckTest, AnIntegerLossIsRefused) {
  EXPECT_THAT(Check("def forward(self, x, y):\n    return (x * self.w).sum().long()\n").message(),
              HasSubstr("wrong loss (expected a scalar, Float [], such as the mean over the batch, "
                        "got Long [])"));
}

TEST(LossCheckTest, ALossWithoutAGradientIsRefused) {
  EXPECT_THAT(Check("def forward(self, x, y):\n    return (x - y.mean()).mean()\n").message(),
              HasSubstr("forward: the result has no gradient (expected one that depends on a "
                        "parameter"));
}

TEST(LossCheckTest, ALossThatIsNotFiniteIsRefused) {
  EXPECT_EQ(
      Check("def forward(self, x, y):\n    return torch.log((x * self.w).mean() - 2)\n").message(),
      "loss: script: not finite for the first 2 training examples (expected a finite loss, got "
      "nan)");
}

TEST(LossCheckTest, IntegersForAModuleOfFloatsAreNamed) {
  const Dataset tokens = {.example_shape = {4},
                          .values = std::vector<int64_t>(12, 1),
                          .targets = std::vector<float>(3, 2)};
  EXPECT_THAT(
      Check("def forward(self, x, y):\n    return (torch.mv(x, self.w) - y).pow(2).mean()\n",
            tokens)
          .message(),
      HasSubstr("forward of x Long [2, 4] and y Float [2]: RuntimeError: expected"));
}

TEST(LossCheckTest, FloatsForAModuleOfTokenIdsAreNamed) {
  EXPECT_THAT(
      Check("def forward(self, x, y):\n    return torch.embedding(self.table, x).mean()\n")
          .message(),
      HasSubstr("forward of x Float [2, 4] and y Float [2]: RuntimeError: Expected tensor for "
                "argument #1 'indices'"));
}

}  // namespace
}  // namespace thinwire
