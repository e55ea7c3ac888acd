#include "kernels/sparse.h"

#include <vector>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

const std::vector<uint32_t> kIndices = {0, 3, 4};

TEST(SparseTest, GathersInTheOrderOfTheIndices) {
  const std::vector<float> values = {10, 11, 12, 13, 14};
  std::vector<float> out(3);
  Gather(values, kIndices, out);
  EXPECT_EQ(out, (std::vector<float>{10, 13, 14}));
}

TEST(SparseTest, ScatterChangesOnlyTheIndexedValues) {
  std::vector<float> out(5, 1.0f);
  Scatter(kIndices, std::vector<float>{1, 2, 3}, 2.0f, out);
  EXPECT_EQ(out, (std::vector<float>{2, 1, 1, 4, 6}));
}

TEST(SparseTest, ScatterAddAddsTheScaledValues) {
  std::vector<float> sum(5, 1.0f);
  ScatterAdd(kIndices, std::vector<float>{1, 2, 3}, 0.5f, sum);
  EXPECT_EQ(sum, (std::vector<float>{1.5, 1, 1, 2, 2.5}));
}

TEST(SparseTest, ARepeatedIndexIsAddedRepeatedly) {
  std::vector<float> sum(2, 0.0f);
  ScatterAdd(std::vector<uint32_t>{1, 1}, std::vector<float>{1, 2}, 1.0f, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 3}));
}

TEST(SparseTest, VisitsEachOfManyIndicesOnce) {
  for (const size_t count : {127, 128, 129, 1000}) {
    std::vector<uint32_t> indices(count);
    std::vector<float> values(count), out(count), want(3 * count, 1.0f);
    for (uint32_t j = 0; j < count; ++j) {
      indices[j] = 3 * j + j % 3;
      values[j] = static_cast<float>(j);
      want[indices[j]] += 2 * values[j];
    }
    std::vector<float> sum(3 * count, 1.0f);
    ScatterAdd(indices, values, 2.0f, sum);
    EXPECT_EQ(sum, want);
    Scatter(indices, values, 1.0f, sum);
    Gather(sum, indices, out);
    EXPECT_EQ(out, values);
  }
}

}  // namespace
}  // namespace thinwire::kernels
