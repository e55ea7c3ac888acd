#include "server/durable/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

TEST(StateFolderTest, ANewFolderSurvivesACrash) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultyFiles files(seed);
    ASSERT_TRUE(files.MakeFolder("/disk").ok());
    ASSERT_TRUE(files.SyncFolder("/").ok());
    for (const std::string root : {"/disk/state", "/disk/other/", "/disk/a/b/state"}) {
      const auto folder = OpenStateFolder(files, root, ServerId{1});
      ASSERT_TRUE(folder.ok()) << folder.status();
      EXPECT_EQ(folder->path, root + "/server-1");
    }
    files.Crash();
    files.Restart();
    EXPECT_TRUE(files.List("/disk/state/server-1").ok());
    EXPECT_TRUE(files.List("/disk/other/server-1").ok());
    EXPECT_TRUE(files.List("/disk/a/b/state/server-1").ok());
  }
}

TEST(StateFolderTest, AFolderBelongsToOneProcess) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/disk").ok());
  const auto first = OpenStateFolder(files, "/disk/state", ServerId{1});
  EXPECT_TRUE(OpenStateFolder(files, "/disk/state", ServerId{0}).ok());
  EXPECT_THAT(
      std::string(OpenStateFolder(files, "/disk/state", ServerId{1}).status().message()),
      testing::HasSubstr("state_dir: another process of server 1 uses /disk/state/server-1"));
}

TEST(StateFolderTest, EpochsIncreaseAlsoWhenTheClockIsSetBack) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/state").ok());
  ASSERT_TRUE(files.SyncFolder("/").ok());
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  const Epoch first{static_cast<uint64_t>(absl::ToUnixNanos(now))};
  EXPECT_EQ(NextEpoch(files, "/state", now).value(), first);
  files.Crash();
  files.Restart();
  EXPECT_EQ(NextEpoch(files, "/state", now - absl::Hours(1)).value(), first + kEpochDistance);
  EXPECT_EQ(NextEpoch(files, "/state", now).value(), first + 2 * kEpochDistance);
  const absl::Time later = now + absl::Hours(1);
  EXPECT_EQ(NextEpoch(files, "/state", later)->value,
            static_cast<uint64_t>(absl::ToUnixNanos(later)));
}

TEST(StateFolderTest, TheRelayedStepIsReadBack) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/disk").ok());
  EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{0});
  for (const uint64_t step : {1u, 123u}) {
    ASSERT_TRUE(StoreRelayed(files, "/disk", Step{step}).ok());
    EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{step});
  }
}

TEST(StateFolderTest, ADamagedRelayedStepIsReported) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/disk").ok());
  ASSERT_TRUE(ReplaceFile(files, "/disk", "relayed", ByteChain(std::vector<std::byte>(3))).ok());
  EXPECT_EQ(ReadRelayed(files, "/disk").status().message(),
            "/disk/relayed: damaged (expected \"step N\")");
}

TEST(StateFolderTest, TheGenerationOfAReturnInMemorySurvivesACrash) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/state").ok());
  ASSERT_TRUE(files.SyncFolder("/").ok());
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(StoredGeneration(files, "/state").value(), Generation{0});
  ASSERT_TRUE(NextEpoch(files, "/state", now).ok());
  EXPECT_EQ(StoredGeneration(files, "/state").value(), Generation{0});
  ASSERT_TRUE(NextEpoch(files, "/state", now, Generation{3}).ok());
  // A process that is started again does not know it.
  files.Crash();
  files.Restart();
  ASSERT_TRUE(NextEpoch(files, "/state", now).ok());
  EXPECT_EQ(StoredGeneration(files, "/state").value(), Generation{3});
}

}  // namespace
}  // namespace thinwire
