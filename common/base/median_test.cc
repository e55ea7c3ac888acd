#include "common/base/median.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

TEST(MedianTest, IsTheValueInTheMiddle) {
  EXPECT_EQ(Median(std::vector<int>{7}), 7);
  EXPECT_EQ(Median(std::vector<int>{9, 1, 5}), 5);
  EXPECT_EQ(Median(std::vector<int>{9, 1, 5, 4}), 5) << "the larger one of 4 and 5";
  EXPECT_EQ(Median(std::vector<double>()), 0.0);
}

}  // namespace
}  // namespace thinwire
