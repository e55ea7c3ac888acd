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
  std::vector<float> x(4);
  dataset.CopyExample(0, x);
  EXPECT_THAT(x, ElementsAre(FloatNear(-2, 1e-5), FloatNear(2, 1e-5), 15, 25));
  dataset.CopyExample(1, x);
  EXPECT_THAT(x, ElementsAre(FloatNear(-1.2, 1e-5), FloatNear(-0.4, 1e-5), 35, 45));
}

TEST(DatasetTest, FloatsAreCopiedUnchanged) {
  const Dataset dataset = {
      .example_shape = {2}, .class_count = 2, .labels = {0, 1}, .floats = {1, 2, -3, 4}};
  std::vector<float> x(2);
  dataset.CopyExample(1, x);
  EXPECT_THAT(x, ElementsAre(-3, 4));
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
