#include "server/core/version_log.h"

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

// The versions on the way from BASE; {99} if there is no way.
std::vector<uint64_t> Way(const VersionLog& log, uint64_t base) {
  const auto chain = log.Since(Version{base});
  if (!chain.has_value()) return {99};
  std::vector<uint64_t> versions;
  for (const auto& delta : *chain) versions.push_back(delta->version.value);
  return versions;
}

using Versions = std::vector<uint64_t>;
const Versions kNoWay = {99};

TEST(VersionLogTest, LeadsFromEveryVersionThatWasPublished) {
  VersionLog log(Version{4}, 1000);
  EXPECT_EQ(Way(log, 4), Versions{});
  EXPECT_EQ(Way(log, 0), kNoWay);
  log.Append(Delta(4, 5, 10));
  log.Append(Delta(5, 8, 10));
  log.Append(Delta(8, 9, 10));
  EXPECT_EQ(log.newest(), Version{9});
  EXPECT_EQ(Way(log, 4), (Versions{5, 8, 9}));
  EXPECT_EQ(Way(log, 5), (Versions{8, 9}));
  EXPECT_EQ(Way(log, 6), kNoWay) << "nobody holds what was not published";
  EXPECT_EQ(Way(log, 9), Versions{});
  EXPECT_EQ(Way(log, 10), kNoWay) << "of another history";
}

TEST(VersionLogTest, TheOldestGoWhenTheBytesAreUsedUp) {
  VersionLog log(Version{0}, 25);
  for (uint64_t v = 0; v < 3; ++v) log.Append(Delta(v, v + 1, 10));
  EXPECT_EQ(Way(log, 0), kNoWay);
  EXPECT_EQ(Way(log, 1), (Versions{2, 3}));
  log.Append(Delta(3, 4, 25));
  EXPECT_EQ(Way(log, 2), kNoWay);
  EXPECT_EQ(Way(log, 3), Versions{4});
}

TEST(VersionLogTest, ADeltaLargerThanTheLogLeavesNoWayBeyondIt) {
  VersionLog log(Version{0}, 25);
  log.Append(Delta(0, 1, 10));
  log.Append(Delta(1, 2, 26));
  EXPECT_EQ(Way(log, 1), kNoWay);
  EXPECT_EQ(Way(log, 2), Versions{});
  log.Append(Delta(2, 3, 10));
  EXPECT_EQ(Way(log, 2), Versions{3});
}

TEST(VersionLogTest, EmptyDeltasAreBoundedInNumber) {
  VersionLog log(Version{0}, 25);
  for (uint64_t v = 0; v < 300; ++v) log.Append(Delta(v, v + 1, 0));
  EXPECT_EQ(Way(log, 43), kNoWay);
  EXPECT_EQ(Way(log, 44).size(), 256);
}

TEST(VersionLogTest, ACopyStaysAsItWas) {
  VersionLog log(Version{0}, 25);
  log.Append(Delta(0, 1, 10));
  const VersionLog before = log;
  log.Append(Delta(1, 2, 25));
  EXPECT_EQ(Way(before, 0), Versions{1});
  EXPECT_EQ(Way(log, 0), kNoWay);
}

}  // namespace
}  // namespace thinwire
