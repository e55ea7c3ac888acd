#include "server/shards/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(MemoryPlanTest, AnUnlimitedBudgetHasTheLargestWindow) {
  const MemoryPlan plan{.worker_count = 1000};
  EXPECT_TRUE(plan.grpc_sizes_windows());
  EXPECT_EQ(plan.window_bytes(), MemoryPlan::kMostSizedWindowBytes);
  EXPECT_TRUE(plan.SharedFrameBytes(ServerId{0}, kMiB << 20, 1000, 1000).ok());
}

TEST(MemoryPlanTest, TheWindowsOfAllWorkersTakeAnEighthOfASmallBudget) {
  EXPECT_EQ((MemoryPlan{.budget_bytes = 256 * kMiB, .worker_count = 64}.window_bytes()), kMiB / 2);
  EXPECT_EQ((MemoryPlan{.budget_bytes = kMiB, .worker_count = 64}.window_bytes()),
            MemoryPlan::kLeastFixedWindowBytes);
}

TEST(MemoryPlanTest, GrpcSizesTheWindowsIfTheLargestOnesFitIntoAnEighthOfTheBudget) {
  const MemoryPlan enough{.budget_bytes = 1024 * kMiB, .worker_count = 4};
  EXPECT_TRUE(enough.grpc_sizes_windows());
  EXPECT_EQ(enough.window_bytes(), 32 * kMiB);
  EXPECT_EQ(enough.WindowBytes(3), 96 * kMiB);
  EXPECT_EQ(enough.WindowBytes(100), 128 * kMiB) << "an eighth of the budget";
  const MemoryPlan scarce{.budget_bytes = 1023 * kMiB, .worker_count = 4};
  EXPECT_FALSE(scarce.grpc_sizes_windows());
  EXPECT_EQ(scarce.window_bytes(), MemoryPlan::kMostFixedWindowBytes);
}

TEST(MemoryPlanTest, SixtyFourWorkersFitInto256MiB) {
  const MemoryPlan plan{.budget_bytes = 256 * kMiB, .worker_count = 64};
  const auto shared = plan.SharedFrameBytes(ServerId{0}, 8 * kMiB, 4, 64);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(*shared,
            256 * kMiB - MemoryPlan::kProgramBytes - plan.ConnectionBytes(4, 64) - 8 * kMiB);
}

TEST(MemoryPlanTest, ABudgetWithoutRoomForOneFramePerWorkerIsRefusedWithAllParts) {
  const MemoryPlan plan{.budget_bytes = 128 * kMiB, .worker_count = 64};
  const auto shared = plan.SharedFrameBytes(ServerId{3}, 1000, 2, 64);
  EXPECT_EQ(shared.status().code(), absl::StatusCode::kInvalidArgument)
      << "a worker must not try again";
  EXPECT_THAT(std::string(shared.status().message()),
              testing::MatchesRegex(
                  "model: needs too much memory on server 3 \\(expected at most 134217728 bytes, "
                  "its --memory_budget or else the memory that was free at its start, got [0-9]+ "
                  "bytes: 1000 for 2 shards, [0-9]+ for "
                  "the connections of 64 workers, 33554432 for the program\\)"));
}

}  // namespace
}  // namespace thinwire
