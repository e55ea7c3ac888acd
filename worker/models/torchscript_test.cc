#include "worker/models/torchscript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "common/spec/task_spec.h"
#include "worker/models/bound_model.h"
#include "worker/models/factory.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kClasses = 3;
const std::vector<int64_t> kShape = {2, 2};

std::string PathOf(const std::string& name) {
  return ::testing::TempDir() + "/torchscript_" + name + ".pt";
}

// Returns a module that maps x [n, 2, 2] to logits [n, 3]. The module has an unused parameter, a
// frozen parameter and a buffer.
torch::jit::Module DenseModule() {
  torch::jit::Module module("Dense");
  module.register_parameter("weight", at::arange(12, at::kFloat).reshape({3, 4}) / 10,
                            /*is_buffer=*/false);
  module.register_parameter("bias", at::zeros({3}), /*is_buffer=*/false);
  module.register_parameter("idle", at::ones({2}), /*is_buffer=*/false);
  module.register_parameter("frozen", at::ones({3}).set_requires_grad(false),
                            /*is_buffer=*/false);
  module.register_buffer("seen", at::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
    def forward(self, x):
        if self.training:
            self.seen.add_(1)
        return torch.linear(x.flatten(1), self.weight, self.bias) * self.frozen * (1 + 0.01 * self.seen)
  )");
  for (const char* name : {"weight", "bias", "idle"}) {
    module.attr(name).toTensor().set_requires_grad(true);
  }
  return module;
}

std::string Save(const std::string& name, const torch::jit::Module& module) {
  module.save(PathOf(name));
  return PathOf(name);
}

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& path,
                                            Precision precision = Precision::kFp32) {
  const TaskSpec task = {.model = ModelKind::kTorchScript,
                         .model_file = path,
                         .device = "cpu",
                         .precision = precision};
  return MakeModel(task, {.shape = kShape, .class_count = kClasses});
}

TEST(TorchScriptTest, ParametersThatRequireAGradientBelongToTheModel) {
  BoundModel bound(Load(Save("dense", DenseModule())).value());
  EXPECT_THAT(bound.model->tensors(),
              ElementsAre(TensorShape{"weight", {3, 4}}, TensorShape{"bias", {3}},
                          TensorShape{"idle", {2}}));
  EXPECT_THAT(bound.replica[2], ElementsAre(1, 1));
  EXPECT_TRUE(bound.model->has_buffers());
}

// A module with two parameters that it uses as `(first x) second`.
torch::jit::Module TwoUses(const at::Tensor& first, const at::Tensor& second) {
  torch::jit::Module module("TwoUses");
  module.register_parameter("first", first, /*is_buffer=*/false);
  torch::jit::Module part("Part");
  part.register_parameter("second", second, /*is_buffer=*/false);
  module.register_module("part", part);
  module.define(R"(
    def forward(self, x):
        return torch.linear(torch.linear(x.flatten(1), self.first), self.part.second)[:, :3]
  )");
  return module;
}

at::Tensor Square() {
  return (at::arange(16, at::kFloat).reshape({4, 4}) / 10).set_requires_grad(true);
}

TEST(TorchScriptTest, TiedParametersAreOneTensorWithTwoNames) {
  BoundModel apart(Load(Save("apart", TwoUses(Square(), Square()))).value());
  EXPECT_THAT(apart.model->tensors(), SizeIs(2));
  EXPECT_THAT(apart.model->aliases(), IsEmpty());
  const ToyBatch toy(6, 4, kClasses);
  ASSERT_TRUE(apart.Train(toy.batch()).ok());
  const at::Tensor square = Square();
  const at::Tensor same_memory = square.detach().set_requires_grad(true);
  for (const at::Tensor& second : {square, same_memory}) {
    BoundModel tied(Load(Save("tied", TwoUses(square, second))).value());
    ASSERT_THAT(tied.model->tensors(), ElementsAre(TensorShape{"first", {4, 4}}));
    EXPECT_THAT(tied.model->aliases(), ElementsAre(TensorAlias{"part.second", 0}));
    ASSERT_TRUE(tied.Train(toy.batch()).ok());
    ASSERT_THAT(tied.sunk, ElementsAre(0));
    for (size_t k = 0; k < 16; ++k) {
      EXPECT_FLOAT_EQ(tied.gradients[0][k], apart.gradients[0][k] + apart.gradients[1][k]) << k;
    }
    const BatchResult before = tied.model->Evaluate(toy.batch()).value();
    tied.replica[0].assign(16, 0.5f);
    apart.replica.assign(2, tied.replica[0]);
    for (uint32_t i : {0u, 1u}) apart.model->Bind(i, apart.replica[i], Model::Place::kHost);
    EXPECT_EQ(tied.model->Evaluate(toy.batch()).value(),
              apart.model->Evaluate(toy.batch()).value());
    EXPECT_NE(tied.model->Evaluate(toy.batch()).value(), before);
  }
}

TEST(TorchScriptTest, ParametersThatShareMemoryInAnotherShapeAreRefused) {
  const at::Tensor square = Square();
  const at::Tensor transposed = square.detach().t().set_requires_grad(true);
  const std::string path = Save("transposed", TwoUses(square, transposed));
  EXPECT_EQ(Load(path).status().message(),
            path +
                ": parameter part.second: wrong memory (expected its own, or all values of "
                "another parameter in the same shape, got a part or another shape of first)");
}

TEST(TorchScriptTest, TheLossFalls) {
  BoundModel bound(Load(Save("falls", DenseModule())).value());
  const ToyBatch toy(6, 4, kClasses);
  const double before = bound.Train(toy.batch())->loss_sum;
  for (int i = 0; i < 40; ++i) {
    bound.Descend(0.5f);
    ASSERT_TRUE(bound.Train(toy.batch()).ok());
  }
  EXPECT_LT(bound.Train(toy.batch())->loss_sum, before / 2);
}

TEST(TorchScriptTest, TheLossFallsInBf16) {
  const std::string path = Save("bf16", DenseModule());
  BoundModel exact(Load(path).value());
  BoundModel bound(Load(path, Precision::kBf16).value());
  const ToyBatch toy(6, 4, kClasses);
  const double before = bound.Train(toy.batch())->loss_sum;
  EXPECT_NE(before, exact.Train(toy.batch())->loss_sum) << "bf16 must change the loss";
  for (int i = 0; i < 40; ++i) {
    bound.Descend(0.5f);
    ASSERT_TRUE(bound.Train(toy.batch()).ok());
  }
  EXPECT_LT(bound.Train(toy.batch())->loss_sum, before / 2);
}

TEST(TorchScriptTest, AllGatesAreAwaitedFirstAndAnUnusedParameterHasZeroGradient) {
  BoundModel bound(Load(Save("gates", DenseModule())).value());
  ASSERT_TRUE(bound.Train(ToyBatch(6, 4, kClasses).batch()).ok());
  EXPECT_THAT(bound.gated, ElementsAre(0, 1, 2));
  ASSERT_EQ(bound.sunk.size(), 3);
  EXPECT_EQ(bound.sunk.back(), 2);
  EXPECT_THAT(bound.gradients[2], ElementsAre(0, 0));
}

TEST(TorchScriptTest, TrainingUpdatesTheBuffersAndResetRestoresThem) {
  BoundModel bound(Load(Save("buffers", DenseModule())).value());
  const ToyBatch toy(6, 4, kClasses);
  const BatchResult fresh = bound.model->Evaluate(toy.batch()).value();
  EXPECT_EQ(bound.model->Evaluate(toy.batch()).value(), fresh);
  ASSERT_TRUE(bound.model->UpdateBuffers(toy.batch()).ok());
  EXPECT_NE(bound.model->Evaluate(toy.batch()).value(), fresh);
  bound.model->ResetBuffers();
  EXPECT_EQ(bound.model->Evaluate(toy.batch()).value(), fresh);
}

TEST(TorchScriptTest, BuffersAndFrozenParametersBelongToTheState) {
  BoundModel bound(Load(Save("state", DenseModule())).value());
  std::vector<ModelBuffer> buffers = bound.model->Buffers().value();
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].name, "seen");
  EXPECT_EQ(buffers[0].dtype, "F32");
  EXPECT_THAT(buffers[0].shape, ElementsAre(1));
  EXPECT_EQ(buffers[1].name, "frozen");
  const ToyBatch toy(6, 4, kClasses);
  const BatchResult fresh = bound.model->Evaluate(toy.batch()).value();
  ASSERT_TRUE(bound.model->UpdateBuffers(toy.batch()).ok());
  EXPECT_NE(bound.model->Buffers().value(), buffers);
  bound.model->SetBuffers(buffers);
  EXPECT_EQ(bound.model->Evaluate(toy.batch()).value(), fresh);
  const float two = 2;
  for (size_t i = 0; i < 3; ++i) std::memcpy(buffers[1].bytes.data() + 4 * i, &two, 4);
  bound.model->SetBuffers(buffers);
  EXPECT_NE(bound.model->Evaluate(toy.batch()).value(), fresh) << "the frozen parameter is used";
}

TEST(TorchScriptTest, DropoutDependsOnTheSeedOfTheBatchOnly) {
  torch::jit::Module module("Dropout");
  module.register_parameter("weight", at::ones({3, 4}).set_requires_grad(true), false);
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
    def forward(self, x):
        return torch.linear(torch.dropout(x.flatten(1), 0.5, self.training), self.weight)
  )");
  BoundModel bound(Load(Save("dropout", module)).value());
  const ToyBatch toy(32, 4, kClasses);
  const auto gradient = [&](uint64_t seed) {
    at::rand({100});  // draws that other code made before
    Batch batch = toy.batch();
    batch.random_seed = seed;
    EXPECT_TRUE(bound.Train(batch).ok());
    return bound.gradients[0];
  };
  const std::vector<float> first = gradient(1);
  EXPECT_NE(gradient(2), first);
  EXPECT_EQ(gradient(1), first);
}

// Returns DenseModule as a module that returns the mean cross entropy itself.
torch::jit::Module DenseLoss() {
  torch::jit::Module module("DenseLoss");
  module.register_parameter("weight", at::arange(12, at::kFloat).reshape({3, 4}) / 10,
                            /*is_buffer=*/false);
  module.attr("weight").toTensor().set_requires_grad(true);
  module.define(R"(
    def forward(self, x, y):
        return torch.cross_entropy_loss(torch.linear(x.flatten(1), self.weight), y)
  )");
  return module;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLoss(const std::string& path,
                                                const ExampleForm& form = {
                                                    .shape = kShape,
                                                    .target_type = ValueType::kInt64}) {
  const TaskSpec task = {.model = ModelKind::kTorchScript,
                         .model_file = path,
                         .device = "cpu",
                         .loss = LossKind::kScript};
  return MakeModel(task, form);
}

TEST(TorchScriptTest, ALossOfTheModuleHasTheGradientsOfTheSameLossOutside) {
  torch::jit::Module logits("Logits");
  logits.register_parameter("weight", at::arange(12, at::kFloat).reshape({3, 4}) / 10, false);
  logits.attr("weight").toTensor().set_requires_grad(true);
  logits.define("def forward(self, x):\n    return torch.linear(x.flatten(1), self.weight)\n");
  BoundModel outside(Load(Save("outside", logits)).value());
  BoundModel inside(LoadLoss(Save("inside", DenseLoss())).value());
  const ToyBatch toy(7, 4, kClasses);
  const Batch targets = {.x = toy.x, .targets = toy.labels};
  for (const uint64_t part_size : {0, 3}) {
    Batch whole = toy.batch();
    Batch batch = targets;
    whole.part_size = batch.part_size = part_size;
    const BatchResult expected = outside.Train(whole).value();
    const BatchResult got = inside.Train(batch).value();
    EXPECT_EQ(got.loss_sum, expected.loss_sum);
    EXPECT_EQ(got.examples, 7);
    EXPECT_EQ(got.accuracy(), std::nullopt);
    EXPECT_EQ(inside.gradients, outside.gradients) << "parts of " << part_size;
  }
  const BatchResult tested = inside.model->Evaluate(targets).value();
  EXPECT_NEAR(tested.loss_sum, outside.model->Evaluate(toy.batch())->loss_sum, 1e-5);
  EXPECT_EQ(tested.accuracy(), std::nullopt);
}

TEST(TorchScriptTest, TokenIdsReachTheModuleAsIntegers) {
  torch::jit::Module module("Tokens");
  module.register_parameter("table", at::arange(20, at::kFloat).reshape({10, 2}) / 10, false);
  module.attr("table").toTensor().set_requires_grad(true);
  module.define(R"(
    def forward(self, x, y):
        return (torch.embedding(self.table, x).sum((1, 2)) - y.sum(1)).pow(2).mean()
  )");
  const std::string path = Save("tokens", module);
  const std::vector<float> y = {1, 0.5f, 2, -1};
  const std::vector<int64_t> wide = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> narrow(wide.begin(), wide.end());
  std::vector<double> losses;
  for (const ValuesView& x : {ValuesView(wide), ValuesView(narrow)}) {
    const ExampleForm form = {
        .shape = {3}, .type = static_cast<ValueType>(x.index()), .target_shape = {2}};
    BoundModel bound(LoadLoss(path, form).value());
    losses.push_back(bound.Train({.x = x, .targets = y})->mean_loss());
    EXPECT_THAT(
        bound.model->Evaluate({.x = x, .targets = std::span(y).first(2)}).status().message(),
        HasSubstr("wrong targets (expected [2, 2], got 2 values)"));
  }
  // Tokens 1 to 3 sum to 2.7 and tokens 4 to 6 to 6.3; the targets sum to 1.5 and 1.
  EXPECT_NEAR(losses[0], (1.2 * 1.2 + 5.3 * 5.3) / 2, 1e-4);
  EXPECT_EQ(losses[1], losses[0]);
}

TEST(TorchScriptTest, AClassifierOfTokenIdsTrains) {
  torch::jit::Module module("Bag");
  module.register_parameter("table", at::arange(30, at::kFloat).reshape({10, 3}) / 10, false);
  module.attr("table").toTensor().set_requires_grad(true);
  module.define("def forward(self, x):\n    return torch.embedding(self.table, x).sum(1)\n");
  const TaskSpec task = {
      .model = ModelKind::kTorchScript, .model_file = Save("bag", module), .device = "cpu"};
  const ExampleForm form = {.shape = {4}, .type = ValueType::kInt64, .class_count = kClasses};
  BoundModel bound(MakeModel(task, form).value());
  const std::vector<int64_t> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int64_t> labels = {0, 2};
  EXPECT_EQ(bound.Train({.x = x, .labels = labels})->accuracy(), 0.5);
}

TEST(TorchScriptTest, AForwardMethodHasTheArgumentsOfTheLoss) {
  EXPECT_THAT(LoadLoss(Save("one", DenseModule())).status().message(),
              HasSubstr("forward: wrong number of arguments (expected 2, the examples and the "
                        "targets, with loss: script, got 1: x)"));
  EXPECT_THAT(Load(Save("two", DenseLoss())).status().message(),
              HasSubstr("forward: wrong number of arguments (expected 1, the examples, with loss: "
                        "cross_entropy, got 2: x, y)"));
}

TEST(TorchScriptTest, AMissingFileIsNamed) {
  const auto model = Load(PathOf("missing"));
  EXPECT_TRUE(absl::IsNotFound(model.status())) << model.status();
  EXPECT_THAT(model.status().message(), HasSubstr(PathOf("missing")));
}

TEST(TorchScriptTest, AFileOfAnotherKindIsRefused) {
  std::ofstream(PathOf("text")) << "no model";
  const auto model = Load(PathOf("text"));
  EXPECT_TRUE(absl::IsInvalidArgument(model.status())) << model.status();
  EXPECT_THAT(model.status().message(),
              HasSubstr("not a TorchScript file (expected a file of "
                        "torch.jit.script(model).save(...), got a text)"));
  std::ofstream(PathOf("gzip")) << "\x1f\x8b\x08";
  EXPECT_THAT(Load(PathOf("gzip")).status().message(), HasSubstr("got a gzip file)"));
}

TEST(TorchScriptTest, AStateDictIsRefusedWithTheFunctionThatWritesAModel) {
  c10::Dict<std::string, at::Tensor> state;
  state.insert("weight", at::ones({2}));
  const std::vector<char> bytes = torch::jit::pickle_save(state);
  std::ofstream(PathOf("state"), std::ios::binary).write(bytes.data(), bytes.size());
  EXPECT_THAT(Load(PathOf("state")).status().message(),
              HasSubstr("(expected a file of torch.jit.script(model).save(...), got a file of "
                        "torch.save, such as a state_dict)"));
}

TEST(TorchScriptTest, AModuleWithoutParametersIsRefused) {
  torch::jit::Module module("Empty");
  module.define("def forward(self, x):\n    return x\n");
  EXPECT_THAT(Load(Save("empty", module)).status().message(),
              HasSubstr("no parameter requires a gradient"));
}

TEST(TorchScriptTest, AParameterThatIsNotFp32IsRefused) {
  torch::jit::Module module("Double");
  module.register_parameter("w", at::ones({3}, at::kDouble).set_requires_grad(true), false);
  module.define("def forward(self, x):\n    return x * self.w\n");
  EXPECT_THAT(
      Load(Save("double", module)).status().message(),
      HasSubstr(
          "parameter w: unsupported type or shape (expected non-empty Float, got Double [3])"));
}

TEST(TorchScriptTest, AForwardThatRejectsTheExamplesIsRefused) {
  torch::jit::Module module("Narrow");
  module.register_parameter("w", at::ones({3, 5}).set_requires_grad(true), false);
  module.define("def forward(self, x):\n    return torch.linear(x.flatten(1), self.w)\n");
  const absl::Status status = Load(Save("narrow", module)).status();
  EXPECT_THAT(status.message(), HasSubstr("forward of [2, 2, 2]: "));
  EXPECT_THAT(status.message(), HasSubstr("RuntimeError: "));
  EXPECT_THAT(status.message(), Not(HasSubstr("\n"))) << "a traceback";
}

TEST(TorchScriptTest, LogitsOfAnotherShapeAreRefused) {
  torch::jit::Module module("Wide");
  module.register_parameter("w", at::ones({7, 4}).set_requires_grad(true), false);
  module.define("def forward(self, x):\n    return torch.linear(x.flatten(1), self.w)\n");
  EXPECT_THAT(Load(Save("wide", module)).status().message(),
              HasSubstr("expected Float [2, 3], got Float [2, 7]"));
}

TEST(TorchScriptTest, AForwardThatReturnsNoTensorIsRefused) {
  torch::jit::Module module("Pair");
  module.register_parameter("w", at::ones({3, 4}).set_requires_grad(true), false);
  module.define("def forward(self, x):\n    return (x, self.w)\n");
  EXPECT_TRUE(absl::IsInvalidArgument(Load(Save("pair", module)).status()));
}

TEST(TorchScriptTest, AModuleWithoutForwardIsRefused) {
  torch::jit::Module module("NoForward");
  module.register_parameter("w", at::ones({3, 4}).set_requires_grad(true), false);
  module.define("def backward(self, x):\n    return x\n");
  EXPECT_THAT(Load(Save("no_forward", module)).status().message(), HasSubstr("no method forward"));
}

}  // namespace
}  // namespace thinwire
