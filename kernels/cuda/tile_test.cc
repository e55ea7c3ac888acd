#include "kernels/cuda/tile.h"

#include "gtest/gtest.h"

namespace thinwire::kernels::cuda {
namespace {

TEST(TileTest, EveryValueIsInOneTileAndTheLastMayBeShort) {
  EXPECT_EQ(OneBlockATile(0), (Grid{0, 256}));
  EXPECT_EQ(OneBlockATile(1), (Grid{1, 256}));
  EXPECT_EQ(OneBlockATile(4096), (Grid{1, 256}));
  EXPECT_EQ(OneBlockATile(4097), (Grid{2, 256}));
  EXPECT_EQ(OneBlockATile(size_t{1} << 40), (Grid{size_t{1} << 28, 256}));
}

TEST(TileTest, EveryThingGetsAThread) {
  EXPECT_EQ(OneThreadEach(0), (Grid{0, 256}));
  EXPECT_EQ(OneThreadEach(256), (Grid{1, 256}));
  EXPECT_EQ(OneThreadEach(257), (Grid{2, 256}));
  EXPECT_EQ(OneThreadEach(33, 32), (Grid{2, 32}));
}

}  // namespace
}  // namespace thinwire::kernels::cuda
