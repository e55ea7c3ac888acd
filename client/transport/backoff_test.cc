#include "client/transport/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace thinwire::client {
namespace {

std::vector<absl::Duration> Waits(uint32_t worker, uint32_t server, int count) {
  Backoff backoff(WorkerId{worker}, ServerId{server});
  std::vector<absl::Duration> waits;
  for (int i = 0; i < count; ++i) waits.push_back(backoff.Next());
  return waits;
}

TEST(BackoffTest, TheLimitDoublesUpToFiveSeconds) {
  absl::Duration longest;
  for (uint32_t worker = 0; worker < 100; ++worker) {
    const std::vector<absl::Duration> waits = Waits(worker, 0, 20);
    absl::Duration limit = absl::Milliseconds(20);
    for (const absl::Duration wait : waits) {
      EXPECT_GE(wait, absl::ZeroDuration());
      EXPECT_LE(wait, limit);
      limit = std::min(2 * limit, absl::Seconds(5));
      longest = std::max(longest, wait);
    }
  }
  EXPECT_GT(longest, absl::Seconds(4.5));
}

TEST(BackoffTest, WorkersAndServersHaveDifferentWaits) {
  std::set<absl::Duration> first_waits;
  for (uint32_t worker = 0; worker < 16; ++worker) {
    for (uint32_t server = 0; server < 4; ++server) {
      first_waits.insert(Waits(worker, server, 1)[0]);
    }
  }
  EXPECT_EQ(first_waits.size(), 16u * 4u);
  // The waits are spread over the whole range.
  EXPECT_LT(*first_waits.begin(), absl::Milliseconds(4));
  EXPECT_GT(*first_waits.rbegin(), absl::Milliseconds(16));
}

TEST(BackoffTest, TheWaitsOfAWorkerAndAServerAreReproducible) {
  EXPECT_EQ(Waits(3, 1, 10), Waits(3, 1, 10));
}

TEST(BackoffTest, ResetMakesTheNextWaitShort) {
  Backoff backoff(WorkerId{1}, ServerId{0});
  for (int i = 0; i < 10; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(20));
}

}  // namespace
}  // namespace thinwire::client
