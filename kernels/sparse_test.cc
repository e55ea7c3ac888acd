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

TEST(SparseTest, ScatterLeavesTheOthersAlone) {
  std::vector<float> out(5, 1.0f);
  Scatter(kIndices, std::vector<float>{1, 2, 3}, 2.0f, out);
  EXPECT_EQ(out, (std::vector<float>{2, 1, 1, 4, 6}));
}

TEST(SparseTest, ScatterAddAddsTheScaledValues) {
  std::vector<float> sum(5, 1.0f);
  ScatterAdd(kIndices, std::vector<float>{1, 2, 3}, 0.5f, sum);
  EXPECT_EQ(sum, (std::vector<float>{1.5, 1, 1, 2, 2.5}));
}

TEST(SparseTest, AnIndexThatComesTwiceIsAddedTwice) {
  std::vector<float> sum(2, 0.0f);
  ScatterAdd(std::vector<uint32_t>{1, 1}, std::vector<float>{1, 2}, 1.0f, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 3}));
}

}  // namespace
}  // namespace thinwire::kernels
