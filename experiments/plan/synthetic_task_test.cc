#include "experiments/plan/synthetic_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thinwire::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

SyntheticTask Spec(double noise) {
  SyntheticTask spec;
  spec.set_values(6000);
  spec.set_tensors(3);
  spec.set_noise(noise);
  spec.set_steps(50);
  return spec;
}

// The values of three tensors of 2000 values.
struct Values {
  std::vector<std::vector<float>> memory{3, std::vector<float>(2000)};
  std::vector<std::span<float>> spans{memory.begin(), memory.end()};
};

Values GradientOf(LearningTask& task, uint32_t worker, uint64_t step, Values& at) {
  Values gradient;
  EXPECT_TRUE(task.Gradient(WorkerId{worker}, Step{step}, 0, at.spans, gradient.spans).ok());
  return gradient;
}

TEST(SyntheticTaskTest, TensorsAreMatricesOfEqualSize) {
  const auto task = MakeSyntheticTask(Spec(1), /*workers=*/4, {.batch_size = 8, .seed = 1});
  ASSERT_THAT(task->tensors(), SizeIs(3));
  EXPECT_THAT(task->tensors()[2].shape, ElementsAre(1, 2000));
  EXPECT_EQ(task->initial(2).size(), 2000u);
  EXPECT_EQ(task->steps(), 50u);
  EXPECT_EQ(task->examples(), 50u * 4 * 8);
}

TEST(SyntheticTaskTest, TheGradientWithoutNoiseLeadsToTheMinimum) {
  const auto task = MakeSyntheticTask(Spec(0), 1, {.batch_size = 1, .seed = 1});
  Values at;
  const TestScore before = *task->Test(at.spans);
  EXPECT_NEAR(before.loss, 3000, 150);  // half of the sum of 6000 squares with the mean 1
  const Values gradient = GradientOf(*task, 0, 0, at);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 2000; ++k) at.memory[i][k] -= gradient.memory[i][k];
  }
  const TestScore after = *task->Test(at.spans);
  EXPECT_EQ(after.loss, 0);
  EXPECT_EQ(after.accuracy, 1);
}

TEST(SyntheticTaskTest, NoiseDependsOnSeedWorkerAndStepOnly) {
  const auto task = MakeSyntheticTask(Spec(2), 4, {.batch_size = 1, .seed = 7});
  const auto again = MakeSyntheticTask(Spec(2), 4, {.batch_size = 1, .seed = 7});
  const auto other = MakeSyntheticTask(Spec(2), 4, {.batch_size = 1, .seed = 8});
  Values at;
  const Values gradient = GradientOf(*task, 1, 5, at);
  GradientOf(*again, 3, 9, at);
  EXPECT_EQ(GradientOf(*again, 1, 5, at).memory, gradient.memory);
  EXPECT_NE(GradientOf(*task, 2, 5, at).memory, gradient.memory);
  EXPECT_NE(GradientOf(*task, 1, 6, at).memory, gradient.memory);
  EXPECT_NE(GradientOf(*other, 1, 5, at).memory, gradient.memory);
}

TEST(SyntheticTaskTest, NoiseHasItsStandardDeviation) {
  const auto noisy = MakeSyntheticTask(Spec(2), 1, {.batch_size = 1, .seed = 7});
  const auto exact = MakeSyntheticTask(Spec(0), 1, {.batch_size = 1, .seed = 7});
  Values at;
  const Values with = GradientOf(*noisy, 0, 0, at);
  const Values without = GradientOf(*exact, 0, 0, at);
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 2000; ++k) {
      const double noise = with.memory[i][k] - without.memory[i][k];
      sum += noise;
      squares += noise * noise;
    }
  }
  // Four standard errors of 6000 draws.
  EXPECT_NEAR(sum / 6000, 0, 4 * 2 / std::sqrt(6000));
  EXPECT_NEAR(std::sqrt(squares / 6000), 2, 4 * 2 / std::sqrt(2 * 6000));
}

}  // namespace
}  // namespace thinwire::lab
