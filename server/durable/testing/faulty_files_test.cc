#include "server/durable/testing/faulty_files.h"

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kSeeds = 100;

ByteChain Text(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return ByteChain(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

std::string ReadText(Files& files, const std::string& path) {
  const auto bytes = files.Read(path);
  if (!bytes.ok()) return std::string(bytes.status().message());
  const std::vector<std::byte> all = bytes->ToVector();
  return std::string(reinterpret_cast<const char*>(all.data()), all.size());
}

// Creates the file PATH with a durable name and the durable bytes TEXT.
std::unique_ptr<WritableFile> DurableFile(Files& files, const std::string& path,
                                          const std::string& text) {
  auto file = files.Create(path).value();
  EXPECT_TRUE(file->Append(Text(text)).ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(files.SyncFolder("").ok());
  return file;
}

TEST(FaultyFiles, FlushedBytesAndNamesSurviveACrash) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    DurableFile(files, "a", "text");
    files.Crash();
    EXPECT_EQ(files.Read("a").status().code(), absl::StatusCode::kUnavailable);
    files.Restart();
    EXPECT_EQ(ReadText(files, "a"), "text");
  }
}

TEST(FaultyFiles, UnflushedBytesAreKeptOrLostOrTorn) {
  int kept_count = 0, lost_count = 0, cut_count = 0, zero_count = 0;
  const std::string tail(64, 'x');
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    const auto file = DurableFile(files, "a", "text");
    ASSERT_TRUE(file->Append(Text(tail)).ok());
    files.Crash();
    files.Restart();
    const std::string found = ReadText(files, "a");
    ASSERT_EQ(found.substr(0, 4), "text");
    ASSERT_LE(found.size(), 4 + tail.size());
    kept_count += found == "text" + tail;
    lost_count += found == "text";
    cut_count += found.size() > 4 && found.size() < 4 + tail.size();
    zero_count += found.find('\0') != std::string::npos;
    EXPECT_FALSE(file->Append(Text("more")).ok()) << "the file was opened before the crash";
  }
  EXPECT_GT(kept_count, 0);
  EXPECT_GT(lost_count, 0);
  EXPECT_GT(cut_count, 0);
  EXPECT_GT(zero_count, 0);
}

TEST(FaultyFiles, UnflushedNamesAreKeptOrLost) {
  std::set<std::vector<std::string>> found;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    DurableFile(files, "old", "");
    ASSERT_TRUE(files.Remove("old").ok());
    ASSERT_TRUE(files.Create("new").ok());
    files.Crash();
    files.Restart();
    found.insert(files.List("").value());
  }
  EXPECT_THAT(found, UnorderedElementsAre(
                         std::vector<std::string>{}, std::vector<std::string>{"new"},
                         std::vector<std::string>{"old"}, std::vector<std::string>{"new", "old"}));
}

TEST(FaultyFiles, AnUnflushedRenameHappensAsAWhole) {
  std::set<std::string> found;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    DurableFile(files, "a", "old");
    DurableFile(files, "a.tmp", "new");
    ASSERT_TRUE(files.Rename("a.tmp", "a").ok());
    files.Crash();
    files.Restart();
    const std::string text = ReadText(files, "a");
    found.insert(text);
    ASSERT_EQ(files.List("").value().size(), text == "new" ? 1u : 2u);
  }
  EXPECT_THAT(found, ElementsAre("new", "old"));
}

TEST(FaultyFiles, ACrashHitsTheChosenOperation) {
  FaultyFiles files;
  files.CrashAt(3);
  auto file = files.Create("a").value();
  EXPECT_TRUE(file->Append(Text("text")).ok());
  EXPECT_FALSE(files.crashed());
  EXPECT_EQ(file->Sync().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(files.crashed());
  EXPECT_EQ(files.operations(), 3u);
  EXPECT_FALSE(files.SyncFolder("").ok());
  EXPECT_EQ(files.operations(), 3u);
}

TEST(FaultyFiles, AfterAFailedFlushLaterFlushesMakeNothingDurable) {
  int lost_count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    const auto file = DurableFile(files, "a", "text");
    ASSERT_TRUE(file->Append(Text(" and more")).ok());
    files.FailFlushAt(1);
    ASSERT_FALSE(file->Sync().ok());
    ASSERT_TRUE(file->Sync().ok());
    files.Crash();
    files.Restart();
    lost_count += ReadText(files, "a") != "text and more";
  }
  EXPECT_GT(lost_count, 0);
}

TEST(FaultyFiles, TheEndOfAProcessLosesNothingUntilTheNextCrash) {
  int lost_count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFiles files(seed);
    const auto file = DurableFile(files, "a", "text");
    ASSERT_TRUE(file->Append(Text(" and more")).ok());
    files.RestartProcess();
    ASSERT_EQ(ReadText(files, "a"), "text and more");
    EXPECT_FALSE(file->Append(Text(".")).ok()) << "the file was opened before the end";
    files.Crash();
    files.Restart();
    lost_count += ReadText(files, "a") != "text and more";
  }
  EXPECT_GT(lost_count, 0);
}

TEST(FaultyFiles, AFullDiskKeepsTheBytesThatFit) {
  FaultyFiles files;
  const auto file = files.Create("a").value();
  files.SetFreeBytes(6);
  EXPECT_TRUE(file->Append(Text("text")).ok());
  EXPECT_EQ(file->Append(Text("text")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadText(files, "a"), "textte");
}

TEST(FaultyFiles, AFlushOfAFileFailsAndThoseOfFoldersDoNotCount) {
  FaultyFiles files;
  const auto file = files.Create("a").value();
  files.FailFileFlushAt(1);
  EXPECT_TRUE(files.SyncFolder("").ok());
  ASSERT_TRUE(file->Append(Text("text")).ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_TRUE(file->Sync().ok()) << "later flushes make nothing durable";
}

TEST(FaultyFiles, IgnoredFlushesMakeNothingDurable) {
  int lost_count = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    FaultyFiles files(seed);
    files.IgnoreFlushes([](const std::string& path) { return path == "a"; });
    for (const char* name : {"a", "b"}) {
      const auto file = files.Create(name).value();
      ASSERT_TRUE(file->Append(Text("text")).ok());
      ASSERT_TRUE(file->Sync().ok());
    }
    ASSERT_TRUE(files.SyncFolder("").ok());
    files.Crash();
    files.Restart();
    EXPECT_EQ(ReadText(files, "b"), "text");
    lost_count += ReadText(files, "a") != "text";
  }
  EXPECT_GT(lost_count, 0);
}

TEST(FaultyFiles, ACrashReleasesLocks) {
  FaultyFiles files;
  const auto old_lock = files.Lock("lock");
  ASSERT_TRUE(old_lock.ok());
  files.Crash();
  files.Restart();
  EXPECT_TRUE(files.Lock("lock").ok());
}

}  // namespace
}  // namespace thinwire
