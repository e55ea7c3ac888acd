#include "server/core/publish/version_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

PublishedDelta Delta(uint64_t base, uint64_t version, size_t bytes) {
  return {.kind = PublishedDelta::Kind::kAdd,
          .base = Version{base},
          .version = Version{version},
          .payload = ByteChain(std::vector<std::byte>(bytes))};
}

using Versions = std::vector<uint64_t>;
const Versions kNoChain = {99};

// Returns the versions of the chain that starts at BASE, or kNoChain if LOG contains no such chain.
Versions Chain(const VersionLog& log, uint64_t base) {
  const auto chain = log.Since(Version{base});
  if (!chain.has_value()) return kNoChain;
  Versions versions;
  for (const auto& delta : *chain) versions.push_back(delta->version.value);
  return versions;
}

TEST(VersionLogTest, FindsAChainFromEveryPublishedVersion) {
  VersionLog log(Version{4}, 1000);
  EXPECT_EQ(Chain(log, 4), Versions{});
  EXPECT_EQ(Chain(log, 0), kNoChain);
  log.Append(Delta(4, 5, 10));
  log.Append(Delta(5, 8, 10));
  log.Append(Delta(8, 9, 10));
  EXPECT_EQ(log.newest(), Version{9});
  EXPECT_EQ(Chain(log, 4), (Versions{5, 8, 9}));
  EXPECT_EQ(Chain(log, 5), (Versions{8, 9}));
  EXPECT_EQ(Chain(log, 6), kNoChain) << "version 6 was never published";
  EXPECT_EQ(Chain(log, 9), Versions{});
  EXPECT_EQ(Chain(log, 10), kNoChain) << "version 10 is not published yet";
  EXPECT_EQ(log.oldest(), Version{4});
  EXPECT_EQ(log.Unchanged()->base, Version{9});
  EXPECT_EQ(log.Unchanged()->version, Version{9});
  for (uint64_t v = 0; v < 11; ++v) {
    EXPECT_EQ(log.Contains(Version{v}), log.Since(Version{v}).has_value()) << v;
  }
}

TEST(VersionLogTest, DropsTheOldestDeltasAboveTheByteLimit) {
  VersionLog log(Version{0}, 25);
  for (uint64_t v = 0; v < 3; ++v) log.Append(Delta(v, v + 1, 10));
  EXPECT_EQ(Chain(log, 0), kNoChain);
  EXPECT_EQ(Chain(log, 1), (Versions{2, 3}));
  log.Append(Delta(3, 4, 25));
  EXPECT_EQ(Chain(log, 2), kNoChain);
  EXPECT_EQ(Chain(log, 3), Versions{4});
}

TEST(VersionLogTest, ADeltaLargerThanTheLogEndsEveryChainAcrossIt) {
  VersionLog log(Version{0}, 25);
  log.Append(Delta(0, 1, 10));
  log.Append(Delta(1, 2, 26));
  EXPECT_EQ(Chain(log, 1), kNoChain);
  EXPECT_EQ(Chain(log, 2), Versions{});
  log.Append(Delta(2, 3, 10));
  EXPECT_EQ(Chain(log, 2), Versions{3});
}

TEST(VersionLogTest, BoundsTheNumberOfEmptyDeltas) {
  VersionLog log(Version{0}, 25);
  for (uint64_t v = 0; v < 300; ++v) log.Append(Delta(v, v + 1, 0));
  EXPECT_EQ(Chain(log, 43), kNoChain);
  EXPECT_EQ(Chain(log, 44).size(), 256);
}

TEST(VersionLogTest, ACopyDoesNotChange) {
  VersionLog log(Version{0}, 25);
  log.Append(Delta(0, 1, 10));
  const VersionLog before = log;
  log.Append(Delta(1, 2, 25));
  EXPECT_EQ(Chain(before, 0), Versions{1});
  EXPECT_EQ(Chain(log, 0), kNoChain);
}

}  // namespace
}  // namespace thinwire
