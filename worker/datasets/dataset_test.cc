#include "worker/datasets/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Dataset TwoImages() {
  return {.example_shape = {2, 1, 2},
          .class_count = 3,
          .labels = {2, 0},
          .bytes = {0, 255, 10, 20, 51, 102, 30, 40},
          .scalings = {Scaling::Normalizing(0.5, 0.25), {.scale = 1, .shift = 5}}};
}

TEST(DatasetTest, EachChannelHasItsOwnScaling) {
  const Dataset dataset = TwoImages();
  Values x;
  dataset.GatherExamples(std::vector<uint32_t>{0, 1}, x);
  EXPECT_THAT(std::get<std::vector<float>>(x),
              ElementsAre(FloatNear(-2, 1e-5), FloatNear(2, 1e-5), 15, 25, FloatNear(-1.2, 1e-5),
                          FloatNear(-0.4, 1e-5), 35, 45));
}

TEST(DatasetTest, ValuesAreCopiedUnchanged) {
  const Dataset dataset = {.example_shape = {2},
                           .class_count = 2,
                           .labels = {0, 1},
                           .values = std::vector<int64_t>{1, 2, -3, 4}};
  Values x;
  dataset.GatherExamples(std::vector<uint32_t>{1}, x);
  EXPECT_THAT(std::get<std::vector<int64_t>>(x), ElementsAre(-3, 4));
  EXPECT_EQ(dataset.value_type(), ValueType::kInt64);
  EXPECT_EQ(TwoImages().value_type(), ValueType::kFloat);
}

TEST(DatasetTest, TargetsBelongToTheExamples) {
  Dataset dataset = {.example_shape = {1},
                     .values = std::vector<float>{1, 2, 3},
                     .targets = std::vector<float>{1, 2, 3, 4, 5, 6},
                     .target_shape = {2}};
  EXPECT_EQ(dataset.example_count(), 3);
  Values y;
  dataset.GatherTargets(std::vector<uint32_t>{2, 0}, y);
  EXPECT_THAT(std::get<std::vector<float>>(y), ElementsAre(5, 6, 1, 2));
  dataset.Truncate(2);
  EXPECT_EQ(dataset.example_count(), 2);
  EXPECT_THAT(std::get<std::vector<float>>(dataset.values), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<float>>(dataset.targets), ElementsAre(1, 2, 3, 4));
}

TEST(DatasetTest, LabelsBecomeTargets) {
  Dataset dataset = TwoImages();
  dataset.MakeLabelsTargets();
  EXPECT_EQ(dataset.example_count(), 2);
  EXPECT_EQ(dataset.class_count, 0);
  EXPECT_THAT(std::get<std::vector<int64_t>>(dataset.targets), ElementsAre(2, 0));
}

TEST(DatasetTest, TruncateKeepsTheFirstExamples) {
  Dataset dataset = TwoImages();
  dataset.Truncate(1);
  EXPECT_EQ(dataset.example_count(), 1);
  EXPECT_THAT(dataset.labels, ElementsAre(2));
  EXPECT_THAT(dataset.bytes, ElementsAre(0, 255, 10, 20));
}

TEST(DatasetTest, TruncatingToZeroOrMoreThanAllKeepsAll) {
  Dataset dataset = TwoImages();
  dataset.Truncate(0);
  dataset.Truncate(3);
  EXPECT_EQ(dataset, TwoImages());
}

}  // namespace
}  // namespace thinwire
