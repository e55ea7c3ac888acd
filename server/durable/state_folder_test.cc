#include "server/durable/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "common/memory/array_bytes.h"
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
    const Step before = ReadRelayed(files, "/disk").value();
    ASSERT_TRUE(PrepareRelayed(files, "/disk", Step{step}).ok());
    EXPECT_EQ(ReadRelayed(files, "/disk").value(), before);
    ASSERT_TRUE(StoreRelayed(files, "/disk").ok());
    EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{step});
  }
}

TEST(StateFolderTest, AStoredRelayedStepSurvivesACrash) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultyFiles files(seed);
    ASSERT_TRUE(files.MakeFolder("/disk").ok());
    ASSERT_TRUE(files.SyncFolder("/").ok());
    ASSERT_TRUE(PrepareRelayed(files, "/disk", Step{7}).ok());
    ASSERT_TRUE(StoreRelayed(files, "/disk").ok());
    ASSERT_TRUE(PrepareRelayed(files, "/disk", Step{8}).ok());
    files.Crash();
    files.Restart();
    EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{7});
    // The next process prepares the step again.
    ASSERT_TRUE(PrepareRelayed(files, "/disk", Step{8}).ok());
    ASSERT_TRUE(StoreRelayed(files, "/disk").ok());
    EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{8});
  }
}

TEST(StateFolderTest, AFullDiskRefusesARelayedStepBeforeItIsPassedOn) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/disk").ok());
  ASSERT_TRUE(PrepareRelayed(files, "/disk", Step{7}).ok());
  ASSERT_TRUE(StoreRelayed(files, "/disk").ok());
  files.SetFreeBytes(0);
  const absl::Status full = PrepareRelayed(files, "/disk", Step{8});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), testing::HasSubstr("/disk/relayed.tmp: cannot write"));
  EXPECT_EQ(ReadRelayed(files, "/disk").value(), Step{7});
}

TEST(StateFolderTest, ADamagedRelayedStepIsReported) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/disk").ok());
  // Empty, zeros, a varint that is cut off, and text.
  for (const std::string& text :
       {std::string(), std::string(3, '\0'), std::string("\x08\x80"), std::string("step 12\n")}) {
    const std::span bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(ReplaceFile(files, "/disk", "relayed", CopyArray(bytes)).ok());
    const absl::Status status = ReadRelayed(files, "/disk").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "/disk/relayed: not the relayed steps of an aggregator");
  }
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
