#include "kernels/cuda/emulation/block.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "gtest/gtest.h"
#include "kernels/cuda/emulation/device.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kAll = ~0u;

void RunBlocks(unsigned blocks, unsigned threads, const std::function<void()>& kernel,
               uint64_t seed = 1) {
  Block::RunGrid(blocks, threads, seed, kernel);
}

TEST(BlockTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> runs(7 * 96);
  RunBlocks(7, 96, [&] {
    EXPECT_EQ(blockDim.x, 96u);
    EXPECT_EQ(gridDim.x, 7u);
    ++runs[blockIdx.x * blockDim.x + threadIdx.x];
  });
  EXPECT_EQ(runs, std::vector<int>(7 * 96, 1));
}

TEST(BlockTest, RunsThreadsAndBlocksInRandomOrder) {
  std::set<std::vector<unsigned>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<unsigned> order;
    RunBlocks(
        4, 2, [&] { order.push_back(blockIdx.x * 2 + threadIdx.x); }, seed);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(BlockTest, NoThreadPassesABarrierBeforeAllArrive) {
  int arrived = 0;
  RunBlocks(1, 128, [&] {
    ++arrived;
    __syncthreads();
    EXPECT_EQ(arrived, 128);
    __syncthreads();
    if (threadIdx.x == 0) arrived = 0;
    __syncthreads();
    EXPECT_EQ(arrived, 0);
  });
}

TEST(BlockTest, ABarrierIgnoresThreadsThatHaveEnded) {
  int passed = 0;
  RunBlocks(1, 64, [&] {
    if (threadIdx.x >= 40) return;
    __syncthreads();
    ++passed;
  });
  EXPECT_EQ(passed, 40);
}

TEST(BlockTest, AMissingBarrierChangesResults) {
  // Each thread reads a word that its neighbor thread writes. The word has its final value only if
  // the neighbor thread ran first.
  std::set<int> results;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    int words[64] = {}, read = 0;
    RunBlocks(
        1, 64,
        [&] {
          words[threadIdx.x] = 1;
          read += words[(threadIdx.x + 1) % 64];
        },
        seed);
    results.insert(read);
  }
  EXPECT_FALSE(results.contains(64));
}

TEST(WarpTest, WarpOperationsExchangeTheLanesInTheirMask) {
  RunBlocks(2, 64, [] {
    const unsigned lane = threadIdx.x % 32;
    EXPECT_EQ(__ballot_sync(kAll, lane % 3 == 0), 0x49249249u);
    EXPECT_EQ(__shfl_sync(kAll, 2.5 * lane, 3), 7.5);
    EXPECT_EQ(__shfl_up_sync(kAll, lane, 4), lane < 4 ? lane : lane - 4);
    EXPECT_EQ(__shfl_xor_sync(kAll, uint64_t{lane} << 40, 1), uint64_t{lane ^ 1} << 40);
    EXPECT_EQ(__reduce_add_sync(kAll, lane), 496u);
    EXPECT_EQ(__reduce_max_sync(kAll, 100 - lane), 100u);
    if (lane >= 8) return;
    EXPECT_EQ(__ballot_sync(0xFF, true), 0xFFu);
    EXPECT_TRUE(__any_sync(0xFF, lane == 7));
    __syncwarp(0xFF);
  });
}

TEST(WarpTest, SumsAcrossABlock) {
  unsigned sum = 0;
  RunBlocks(3, 256, [&] {
    const unsigned warp_sum = __reduce_add_sync(kAll, threadIdx.x);
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, warp_sum);
  });
  EXPECT_EQ(sum, 3 * 255 * 128u);
}

using WarpDeathTest = testing::Test;

TEST(WarpDeathTest, DifferentOperationsInOneWarpAbort) {
  EXPECT_DEATH(RunBlocks(1, 32,
                         [] {
                           if (threadIdx.x < 16) {
                             __ballot_sync(kAll, true);
                           } else {
                             __reduce_add_sync(kAll, 1);
                           }
                         }),
               "executes a different warp operation");
}

TEST(WarpDeathTest, WaitingForALaneThatHasEndedAborts) {
  EXPECT_DEATH(RunBlocks(1, 32,
                         [] {
                           if (threadIdx.x == 5) return;
                           __syncwarp();
                         }),
               "a lane that has ended|threads that never arrive");
}

TEST(WarpDeathTest, AThreadOutsideItsMaskAborts) {
  EXPECT_DEATH(RunBlocks(1, 32, [] { __syncwarp(1); }), "not in its own mask");
}

TEST(WarpDeathTest, ABarrierThatSomeThreadsNeverReachAborts) {
  EXPECT_DEATH(RunBlocks(1, 64,
                         [] {
                           if (threadIdx.x < 32) {
                             __syncthreads();
                           } else if (threadIdx.x < 63) {
                             __syncwarp();
                           }
                         }),
               "a lane that has ended|threads that never arrive");
}

}  // namespace
}  // namespace thinwire::kernels::cuda
