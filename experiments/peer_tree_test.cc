#include "experiments/peer_tree.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(PeerTreeTest, EqualIndicesAddAndTheLargestMagnitudesRemain) {
  EXPECT_EQ(MergeLargest({{1, 2.0f}, {4, -3.0f}}, {{1, 2.0f}, {5, 1.0f}}, 2),
            (Entries{{1, 4.0f}, {4, -3.0f}}));
}

TEST(PeerTreeTest, LowerIndexWinsAmongEqualMagnitudes) {
  EXPECT_EQ(MergeLargest({{7, 2.0f}}, {{3, -2.0f}}, 1), (Entries{{3, -2.0f}}));
}

TEST(PeerTreeTest, SingleWorkerBringsItsSelectionToTheRoot) {
  EXPECT_EQ(PeerTree({{{2, 1.0f}}}, 1), (Entries{{2, 1.0f}}));
}

TEST(PeerTreeTest, PrunedValueIsLostIfTheOtherHalfBringsItsIndex) {
  const std::vector<Entries> selected = {{{0, 2.0f}}, {{1, 3.0f}}, {{0, 4.0f}}, {{2, 1.0f}}};
  // The exact sum at index 0 is 6; the tree lost worker 0's value of 2.
  EXPECT_EQ(PeerTree(selected, 1), (Entries{{0, 4.0f}}));
}

}  // namespace
}  // namespace thinwire
