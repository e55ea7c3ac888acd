#include "kernels/cuda/block/tile.h"

#include "gtest/gtest.h"

namespace thinwire::kernels::cuda {
namespace {

TEST(TileTest, EveryValueIsInOneTile) {
  EXPECT_EQ(OneBlockPerTile(0), (Grid{0, 256}));
  EXPECT_EQ(OneBlockPerTile(1), (Grid{1, 256}));
  EXPECT_EQ(OneBlockPerTile(4096), (Grid{1, 256}));
  EXPECT_EQ(OneBlockPerTile(4097), (Grid{2, 256}));
  EXPECT_EQ(OneBlockPerTile(size_t{1} << 40), (Grid{size_t{1} << 28, 256}));
}

TEST(TileTest, EveryItemHasAThread) {
  EXPECT_EQ(OneThreadPerItem(0), (Grid{0, 256}));
  EXPECT_EQ(OneThreadPerItem(256), (Grid{1, 256}));
  EXPECT_EQ(OneThreadPerItem(257), (Grid{2, 256}));
  EXPECT_EQ(OneThreadPerItem(33, 32), (Grid{2, 32}));
}

}  // namespace
}  // namespace thinwire::kernels::cuda
