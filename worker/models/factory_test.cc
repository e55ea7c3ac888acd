// Tests that every built-in model must pass, and tests of individual models.
#include "worker/models/factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "worker/models/bound_model.h"

// Exists if LibTorch computes with OpenBLAS.
extern "C" int openblas_get_num_threads() __attribute__((weak));

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TaskSpec TaskOf(const std::string& model, uint64_t seed = 1) {
  const auto* name = std::ranges::find(kModelNames, model);
  return {.model = static_cast<ModelKind>(name - std::begin(kModelNames)),
          .seed = seed,
          .device = "cpu"};
}

BoundModel Make(const std::string& name, std::vector<int64_t> shape, int64_t classes,
                uint64_t seed = 1, Precision precision = Precision::kFp32) {
  TaskSpec task = TaskOf(name, seed);
  task.precision = precision;
  return BoundModel(MakeModel(task, {.shape = shape, .class_count = classes}).value());
}

uint64_t ValueCount(const Model& model) {
  uint64_t count = 0;
  for (const TensorShape& tensor : model.tensors()) count += tensor.value_count();
  return count;
}

class BuiltInModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  BoundModel Small(uint64_t seed = 1, Precision precision = Precision::kFp32) {
    return Make(GetParam(), {1, 8, 8}, 3, seed, precision);
  }
  const ToyBatch toy_{6, 64, 3};
};

TEST_P(BuiltInModelTest, EveryTensorIsGatedOnce) {
  BoundModel bound = Small();
  ASSERT_TRUE(bound.Train(toy_.batch()).ok());
  std::vector<uint32_t> want(bound.replica.size());
  std::iota(want.begin(), want.end(), 0u);
  std::sort(bound.gated.begin(), bound.gated.end());
  EXPECT_EQ(bound.gated, want);
}

TEST_P(BuiltInModelTest, EveryGradientReachesTheSinkOnceLastLayerFirst) {
  BoundModel bound = Small();
  ASSERT_TRUE(bound.Train(toy_.batch()).ok());
  // Returns the layer of a tensor: the tensor's name up to the last dot. The gradients of one
  // layer's tensors may arrive in any order, so the test checks only the order of the layers.
  const auto layer = [&](uint32_t i) {
    const std::string& name = bound.model->tensors()[i].name;
    return name.substr(0, name.rfind('.'));
  };
  std::vector<std::string> got;
  for (uint32_t i : bound.sunk) {
    if (got.empty() || got.back() != layer(i)) got.push_back(layer(i));
  }
  std::vector<std::string> want;
  for (uint32_t i = static_cast<uint32_t>(bound.replica.size()); i-- > 0;) {
    if (want.empty() || want.back() != layer(i)) want.push_back(layer(i));
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(bound.sunk.size(), bound.replica.size());
  EXPECT_EQ(std::set<uint32_t>(bound.sunk.begin(), bound.sunk.end()).size(), bound.sunk.size());
}

TEST_P(BuiltInModelTest, TheGradientIsTheSlopeOfTheMeanLoss) {
  BoundModel bound = Small();
  ASSERT_TRUE(bound.Train(toy_.batch()).ok());
  const auto gradients = bound.gradients;
  double squares = 0;
  for (const auto& gradient : gradients) {
    for (float g : gradient) squares += static_cast<double>(g) * g;
  }
  // Measures the slope of the loss along the gradient, with a small step in both directions. The
  // derivative of the loss with respect to the step size is the squared norm of the gradient.
  const float by = static_cast<float>(1e-3 / std::sqrt(squares));
  bound.Descend(by);
  const double below = bound.Train(toy_.batch())->loss_sum / 6;
  bound.gradients = gradients;
  bound.Descend(-2 * by);
  const double above = bound.Train(toy_.batch())->loss_sum / 6;
  const double slope = (above - below) / (2 * by);
  EXPECT_NEAR(slope / squares, 1, 0.05);
}

TEST_P(BuiltInModelTest, PartsDeliverEveryGradientOnceAndOpenEveryGateOnce) {
  BoundModel bound = Small();
  Batch batch = toy_.batch();
  batch.part_size = 4;
  const BatchResult result = bound.Train(batch).value();
  EXPECT_EQ(result.examples, 6);
  EXPECT_EQ(bound.gated.size(), bound.replica.size());
  EXPECT_EQ(bound.sunk.size(), bound.replica.size());
}

TEST_P(BuiltInModelTest, PartsOfABatchHaveTheGradientOfTheWholeBatch) {
  if (std::string(GetParam()) == "resnet20") GTEST_SKIP() << "normalizes every part by itself";
  BoundModel bound = Small();
  const BatchResult whole = bound.Train(toy_.batch(), /*loss_scale=*/8).value();
  const auto expected = bound.gradients;
  int compared = 0;
  for (const uint64_t part_size : {1, 2, 4, 6, 7}) {
    Batch batch = toy_.batch();
    batch.part_size = part_size;
    const BatchResult parts = bound.Train(batch, /*loss_scale=*/8).value();
    EXPECT_NEAR(parts.loss_sum, whole.loss_sum, 1e-4);
    EXPECT_EQ(parts.correct, whole.correct);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t k = 0; k < expected[i].size(); ++k) {
        ASSERT_NEAR(bound.gradients[i][k], expected[i][k], 1e-4)
            << part_size << " " << i << " " << k;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 5 * ValueCount(*bound.model));
}

TEST_P(BuiltInModelTest, TheReplicaIsTheModelsMemory) {
  BoundModel bound = Small();
  const double before = bound.model->Evaluate(toy_.batch())->loss_sum;
  for (float& value : bound.replica.back()) value += 1;
  bound.replica.back()[0] += 3;
  EXPECT_NE(bound.model->Evaluate(toy_.batch())->loss_sum, before);
}

TEST_P(BuiltInModelTest, TheLossFallsOnAToyProblem) {
  BoundModel bound = Small();
  const double before = bound.Train(toy_.batch())->loss_sum;
  for (int i = 0; i < 25; ++i) {
    bound.Descend(0.1f);
    ASSERT_TRUE(bound.Train(toy_.batch()).ok());
  }
  const BatchResult after = bound.Train(toy_.batch()).value();
  EXPECT_LT(after.loss_sum, before / 2);
  EXPECT_EQ(after.correct, 6);
  EXPECT_EQ(after.examples, 6);
}

TEST_P(BuiltInModelTest, TheLossScaleMultipliesTheGradientsExactlyAndNothingElse) {
  BoundModel plain = Small();
  BoundModel scaled = Small();
  const BatchResult want = plain.Train(toy_.batch()).value();
  EXPECT_EQ(scaled.Train(toy_.batch(), 0x1p16f).value(), want);
  for (size_t t = 0; t < plain.gradients.size(); ++t) {
    for (float& g : plain.gradients[t]) g *= 0x1p16f;
    EXPECT_EQ(scaled.gradients[t], plain.gradients[t]) << t;
  }
}

TEST_P(BuiltInModelTest, GradientsInBf16AreCloseToThoseInFp32) {
  BoundModel exact = Small();
  BoundModel rounded = Small(1, Precision::kBf16);
  EXPECT_EQ(rounded.replica, exact.replica) << "initial values are fp32";
  const double loss = exact.Train(toy_.batch())->loss_sum;
  EXPECT_NEAR(rounded.Train(toy_.batch())->loss_sum, loss, 0.02 * loss);
  double squares = 0, squared_difference = 0;
  for (size_t t = 0; t < exact.gradients.size(); ++t) {
    for (size_t i = 0; i < exact.gradients[t].size(); ++i) {
      squares += std::pow(double{exact.gradients[t][i]}, 2);
      squared_difference +=
          std::pow(double{exact.gradients[t][i]} - double{rounded.gradients[t][i]}, 2);
    }
  }
  EXPECT_GT(squared_difference, 0) << "bf16 must change the gradients";
  // The bound is wide because ResNet-20 rounds to the eight significant bits of bf16 in each of
  // twenty layers, and its batch normalization averages over few values. On a processor without
  // AVX-512, LibTorch also rounds intermediate sums, and the ratio is 0.16. Unrelated gradients
  // would have a ratio of 2.
  EXPECT_LT(squared_difference, 0.25 * squares);
}

TEST_P(BuiltInModelTest, TheLossFallsInBf16) {
  BoundModel bound = Small(1, Precision::kBf16);
  const double before = bound.model->Evaluate(toy_.batch())->loss_sum;
  for (int i = 0; i < 25; ++i) {
    ASSERT_TRUE(bound.Train(toy_.batch(), 1024).ok());
    bound.Descend(0.1f / 1024);
  }
  const BatchResult after = bound.Train(toy_.batch()).value();
  EXPECT_LT(after.loss_sum, before / 2);
  EXPECT_EQ(after.correct, 6);
}

TEST_P(BuiltInModelTest, APrecisionThatLibTorchDoesNotSupportIsRefusedAtTheStart) {
  TaskSpec task = TaskOf(GetParam());
  task.precision = Precision::kFp16;
  const auto model = MakeModel(task, {.shape = {1, 8, 8}, .class_count = 3});
  if (model.ok()) GTEST_SKIP() << TorchVersion() << " supports fp16 on the CPU";
  EXPECT_TRUE(absl::IsInvalidArgument(model.status()));
  EXPECT_THAT(model.status().message(), HasSubstr("precision: not supported by LibTorch"));
  EXPECT_THAT(model.status().message(), HasSubstr("(expected fp32 or bf16, got fp16)"));
}

TEST_P(BuiltInModelTest, TheSeedDeterminesTheInitialValues) {
  const BoundModel bound = Small(5);
  EXPECT_EQ(bound.replica, Small(5).replica);
  EXPECT_NE(bound.replica, Small(6).replica);
}

TEST_P(BuiltInModelTest, AFailedGateEndsTheStepWithoutAGradient) {
  BoundModel bound = Small();
  uint32_t asked = 0;
  const auto result = bound.model->Train(
      toy_.batch(), /*loss_scale=*/1,
      [&](uint32_t) {
        return ++asked < 2 ? absl::OkStatus() : absl::UnavailableError("server 1 is gone");
      },
      [&](uint32_t i, const TensorGradient&) { ADD_FAILURE() << "gradient of " << i; });
  EXPECT_EQ(result.status(), absl::UnavailableError("server 1 is gone"));
  EXPECT_EQ(asked, 2);
}

TEST_P(BuiltInModelTest, ABatchThatDoesNotFitIsRefused) {
  BoundModel bound = Small();
  const ToyBatch wide(6, 65, 3);
  EXPECT_THAT(bound.Train(wide.batch()).status().message(), HasSubstr("got 390 values"));
  ToyBatch labels(6, 64, 3);
  labels.labels[2] = 3;
  EXPECT_THAT(bound.Train(labels.batch()).status().message(), HasSubstr("expected 0 to 2, got 3"));
  labels.labels[2] = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(bound.model->Evaluate(labels.batch()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(bound.Train({}).status()));
}

INSTANTIATE_TEST_SUITE_P(All, BuiltInModelTest,
                         ::testing::Values("softmax", "mlp", "cnn", "resnet20"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SoftmaxTest, EveryPartialDerivativeMatchesFiniteDifferences) {
  BoundModel bound = Make("softmax", {4}, 3);
  const ToyBatch toy(5, 4, 3);
  ASSERT_TRUE(bound.Train(toy.batch()).ok());
  const auto gradients = bound.gradients;
  const float by = 1e-2f;
  for (size_t t = 0; t < gradients.size(); ++t) {
    for (size_t k = 0; k < gradients[t].size(); ++k) {
      const float at = bound.replica[t][k];
      bound.replica[t][k] = at + by;
      const double above = bound.model->Evaluate(toy.batch())->loss_sum;
      bound.replica[t][k] = at - by;
      const double below = bound.model->Evaluate(toy.batch())->loss_sum;
      bound.replica[t][k] = at;
      EXPECT_NEAR(gradients[t][k], (above - below) / (2 * by * 5), 1e-4) << t << " " << k;
    }
  }
}

TEST(SoftmaxTest, TheForwardOrderIsWeightThenBias) {
  const BoundModel bound = Make("softmax", {1, 28, 28}, 10);
  const auto& tensors = bound.model->tensors();
  ASSERT_EQ(tensors.size(), 2);
  EXPECT_EQ(tensors[0], (TensorShape{"dense.weight", {10, 784}}));
  EXPECT_EQ(tensors[1], (TensorShape{"dense.bias", {10}}));
}

TEST(MlpTest, ItHasTheLayersOfItsDescription) {
  EXPECT_EQ(ValueCount(*Make("mlp", {1, 28, 28}, 10).model),
            784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
}

TEST(CnnTest, ItHasTheSizeOfItsDescription) {
  EXPECT_EQ(ValueCount(*Make("cnn", {1, 28, 28}, 10).model), 215'370);
  EXPECT_EQ(ValueCount(*Make("cnn", {3, 32, 32}, 10).model), 277'610);
}

TEST(Resnet20Test, ItHasAboutAQuarterMillionValues) {
  EXPECT_EQ(ValueCount(*Make("resnet20", {3, 32, 32}, 10).model), 269'722);
  EXPECT_EQ(ValueCount(*Make("resnet20", {1, 28, 28}, 10).model), 269'434);
}

TEST(Resnet20Test, TrainingUpdatesTheBuffersAndResetRestoresThem) {
  BoundModel bound = Make("resnet20", {1, 8, 8}, 3);
  const ToyBatch toy(6, 64, 3);
  ASSERT_TRUE(bound.model->has_buffers());
  const auto fresh = bound.model->Evaluate(toy.batch()).value();
  ASSERT_TRUE(bound.Train(toy.batch()).ok());
  EXPECT_NE(bound.model->Evaluate(toy.batch()).value(), fresh);
  bound.model->ResetBuffers();
  EXPECT_EQ(bound.model->Evaluate(toy.batch()).value(), fresh);
}

TEST(Resnet20Test, TheBatchesOfEveryNormalizationAreCounted) {
  BoundModel bound = Make("resnet20", {1, 8, 8}, 3);
  const ToyBatch toy(6, 64, 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bound.model->UpdateBuffers(toy.batch()).ok());
  ASSERT_TRUE(bound.model->Evaluate(toy.batch()).ok());
  const std::vector<ModelBuffer> buffers = bound.model->Buffers().value();
  int counted = 0;
  for (const ModelBuffer& buffer : buffers) {
    if (!buffer.name.ends_with("num_batches_tracked")) continue;
    EXPECT_EQ(buffer.dtype, "I64");
    EXPECT_EQ(buffer.bytes, (std::vector<uint8_t>{3, 0, 0, 0, 0, 0, 0, 0}));
    ++counted;
  }
  EXPECT_EQ(counted, 19);
}

TEST(Resnet20Test, UpdatedBuffersMakeEvaluationAgreeWithTraining) {
  BoundModel bound = Make("resnet20", {1, 8, 8}, 3);
  const ToyBatch toy(6, 64, 3);
  const double training = bound.Train(toy.batch())->loss_sum;
  bound.model->ResetBuffers();
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(bound.model->UpdateBuffers(toy.batch()).ok());
  // The losses in training and evaluation are only approximately equal: evaluation normalizes with
  // the unbiased estimate of the variance, and training with the biased estimate.
  EXPECT_NEAR(bound.model->Evaluate(toy.batch())->loss_sum, training, 0.1 * training);
}

TEST(Resnet20Test, BuffersInBf16AreCloseToThoseInFp32AndStartAtTheirInitialValues) {
  BoundModel exact = Make("resnet20", {1, 8, 8}, 3);
  BoundModel rounded = Make("resnet20", {1, 8, 8}, 3, 1, Precision::kBf16);
  const ToyBatch toy(6, 64, 3);
  // Making a model runs a training step to check the precision. This step must not change the
  // model's buffers.
  const double fresh = exact.model->Evaluate(toy.batch())->loss_sum;
  EXPECT_NEAR(rounded.model->Evaluate(toy.batch())->loss_sum, fresh, 0.02 * fresh);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(exact.model->UpdateBuffers(toy.batch()).ok());
    ASSERT_TRUE(rounded.model->UpdateBuffers(toy.batch()).ok());
  }
  const double moved = exact.model->Evaluate(toy.batch())->loss_sum;
  EXPECT_NEAR(rounded.model->Evaluate(toy.batch())->loss_sum, moved, 0.05 * moved);
}

TEST(CnnTest, EvaluationChangesNothing) {
  BoundModel bound = Make("cnn", {1, 8, 8}, 3);
  EXPECT_FALSE(bound.model->has_buffers());
  const ToyBatch toy(6, 64, 3);
  const auto first = bound.model->Evaluate(toy.batch()).value();
  EXPECT_EQ(bound.model->Evaluate(toy.batch()).value(), first);
}

TEST(FactoryTest, ConvolutionalNetworksRefuseOtherShapesThanImages) {
  for (const char* name : {"cnn", "resnet20"}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{784}, {1, 3, 28}, {28, 28}}) {
      EXPECT_THAT(MakeModel(TaskOf(name), {.shape = shape, .class_count = 3}).status().message(),
                  HasSubstr("expected [channels, height, width]"));
    }
  }
}

TEST(FactoryTest, BuiltInModelsRefuseIntegers) {
  EXPECT_EQ(
      MakeModel(TaskOf("softmax"), {.shape = {4}, .type = ValueType::kInt64, .class_count = 3})
          .status()
          .message(),
      "x: wrong type for model: softmax (expected F32, or model: torchscript, got I64)");
}

TEST(FactoryTest, AnUnknownDeviceIsRefused) {
  TaskSpec task = TaskOf("softmax");
  for (const char* device : {"gpu", "cuda", "cuda:", "cuda:-1", "cuda:x", ""}) {
    task.device = device;
    EXPECT_THAT(MakeModel(task, {.shape = {4}, .class_count = 3}).status().message(),
                HasSubstr("expected auto, cpu or cuda:N"))
        << device;
  }
  task.device = "cuda:4096";
  EXPECT_THAT(MakeModel(task, {.shape = {4}, .class_count = 3}).status().message(),
              HasSubstr("device: cuda:4096 is not available: LibTorch "));
}

TEST(FactoryTest, OpenBlasComputesWithTheGivenThreads) {
  if (openblas_get_num_threads == nullptr) GTEST_SKIP() << "LibTorch has another BLAS";
  UseThreads(3);
  EXPECT_EQ(openblas_get_num_threads(), 3);
}

}  // namespace
}  // namespace thinwire
